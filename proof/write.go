package proof

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Stores are what a proof is made from. Both are only read.
type Stores struct {
	Blobs blob.Store
	Rows  kv.Store
}

// Subject is what a proof is about. One of the fields is set.
type Subject struct {
	// Conversation is the id of a conversation, with all its saves and checkpoints.
	Conversation string
	// Checkpoint is the id of one checkpoint.
	Checkpoint string
}

// Options configure a proof; nil gives the defaults.
type Options struct {
	// Contents puts the contents of files and conversations into the proof. Without it
	// the proof has names, modes and hashes of files.
	Contents bool
	// Now is the clock, time.Now if nil.
	Now func() time.Time
}

// Write writes a proof that is signed with a key. It reads the rows of the whole
// store once. After an error the output is useless. It fails with ErrNotFound if the
// store does not have the conversation or checkpoint.
func Write(ctx context.Context, w io.Writer, stores Stores, about Subject, key ed25519.PrivateKey, opts *Options) error {
	if opts == nil {
		opts = &Options{}
	}
	now := opts.Now
	if now == nil {
		now = time.Now
	}
	m := &maker{stores: stores, opts: *opts, about: about, out: newPrinter(w), named: newFrontier()}
	if err := m.write(ctx, now); err != nil {
		return fmt.Errorf("write proof: %w", err)
	}
	signature := ed25519.Sign(key, signed(m.out.sum))
	data, err := encode(end{Key: FormatPublic(key.Public().(ed25519.PublicKey)), Signature: signature})
	if err == nil {
		_, err = m.out.out.Write(data)
	}
	if err == nil {
		err = m.out.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write proof: %w", err)
	}
	return nil
}

// maker writes one proof.
type maker struct {
	stores Stores
	opts   Options
	about  Subject
	out    *printer
	named  *frontier
}

func (m *maker) write(ctx context.Context, now func() time.Time) error {
	name, conversation, err := m.subject(ctx)
	if err != nil {
		return err
	}
	held, err := gather(ctx, m.stores.Rows, name, conversation)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(held.groups, func(g *group) bool { return g.name == name })
	if at < 0 || m.about.Checkpoint != "" && !slices.ContainsFunc(held.groups[at].rows, m.shown) {
		return fmt.Errorf("%w: it was removed meanwhile", ErrNotFound)
	}
	log, link, err := readLog(ctx, m.stores.Rows)
	if err != nil {
		return err
	}
	err = m.out.print(head{
		Format: formatName, Version: formatVersion, Time: now().UTC().Format("2006-01-02T15:04:05.000Z"),
		Conversation: m.about.Conversation, Checkpoint: m.about.Checkpoint, Contents: m.opts.Contents,
		Log: logHead{uint64(len(log)), link}, Groups: uint64(len(held.groups)), Root: rootOf(held.leaves),
	})
	if err == nil {
		err = m.log(log, held.groups[at])
	}
	if err == nil {
		err = prune(held.leaves, func(i int) bool { return i == at }, func(int) error { return m.group(held.groups[at]) }, m.hide)
	}
	if err == nil {
		err = m.blobs(ctx)
	}
	return err
}

// subject returns the group of what the proof is about, and its conversation if it has
// one.
func (m *maker) subject(ctx context.Context) (name, conversation string, err error) {
	if id := m.about.Conversation; id != "" {
		if _, err := m.stores.Rows.Get(ctx, keyspace.Conversation(id)); errors.Is(err, kv.ErrNotFound) {
			return "", "", fmt.Errorf("conversation %q: %w", id, ErrNotFound)
		} else if err != nil {
			return "", "", err
		}
		return conversationGroup(id), id, nil
	}
	row, err := m.stores.Rows.Get(ctx, keyspace.Checkpoint(m.about.Checkpoint))
	if errors.Is(err, kv.ErrNotFound) {
		return "", "", fmt.Errorf("checkpoint %q: %w", m.about.Checkpoint, ErrNotFound)
	}
	if err != nil {
		return "", "", err
	}
	if name, err = groupOf(row); err != nil {
		return "", "", err
	}
	// The conversation may have been removed, and its checkpoints stayed.
	var rec stetv1.CheckpointRecord
	if err := proto.Unmarshal(row.Value, &rec); err != nil {
		return "", "", err
	}
	if _, err := m.stores.Rows.Get(ctx, keyspace.Conversation(rec.Conversation)); rec.Conversation != "" && err == nil {
		conversation = rec.Conversation
	}
	return name, conversation, nil
}

// shown reports whether a row of the group is in the proof, not only its hash.
func (m *maker) shown(row kv.Row) bool {
	return m.about.Checkpoint == "" || row.Key == keyspace.Checkpoint(m.about.Checkpoint)
}

// log writes the entries from the first one that concerns the group.
func (m *maker) log(log []entry, about *group) error {
	concerns := m.concerns(about)
	first := slices.IndexFunc(log, func(e entry) bool { return concerns(e.rec) })
	if first < 0 {
		return nil
	}
	after := uint64(first)
	if err := m.out.print(line{After: &after, Link: &log[first].before}); err != nil {
		return err
	}
	for _, e := range log[first:] {
		if !concerns(e.rec) {
			if err := m.out.print(line{Digest: &e.digest}); err != nil {
				return err
			}
			continue
		}
		if err := m.row(e.Row); err != nil {
			return err
		}
	}
	return nil
}

// concerns returns a function that reports whether an operation belongs to a group:
// operations of its conversation, and operations of no conversation in one of its
// workspaces or in none.
func (m *maker) concerns(about *group) func(*stetv1.OperationRecord) bool {
	if m.about.Checkpoint != "" {
		return func(op *stetv1.OperationRecord) bool {
			return op.Before == m.about.Checkpoint || op.After == m.about.Checkpoint || op.Target == m.about.Checkpoint
		}
	}
	workspaces := map[string]bool{"": true}
	for _, row := range about.rows {
		var rec stetv1.CheckpointRecord
		if keyspace.Checkpoints().Contains(row.Key) && proto.Unmarshal(row.Value, &rec) == nil {
			workspaces[rec.Workspace] = true
		}
	}
	return func(op *stetv1.OperationRecord) bool {
		return op.Conversation == m.about.Conversation || op.Conversation == "" && workspaces[op.Workspace]
	}
}

func (m *maker) group(g *group) error {
	if err := m.out.print(line{Group: g.name, Rows: uint64(len(g.leaves))}); err != nil {
		return err
	}
	return prune(g.leaves, func(i int) bool { return m.shown(g.rows[i]) }, func(i int) error { return m.row(g.rows[i]) }, m.hide)
}

func (m *maker) row(row kv.Row) error {
	if err := m.named.row(row); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrCorrupt, err)
	}
	return m.out.print(line{Key: row.Key, Value: row.Value})
}

func (m *maker) hide(n int, hash blob.ID) error {
	return m.out.print(line{Hidden: uint64(n), Hash: &hash})
}

// blobs writes what the rows name and what these blobs name.
func (m *maker) blobs(ctx context.Context) error {
	for len(m.named.waiting) > 0 {
		id := m.named.waiting[0]
		m.named.waiting = m.named.waiting[1:]
		k := m.named.kinds[id]
		if k.form != node && !m.opts.Contents {
			continue
		}
		data, err := m.stores.Blobs.Get(ctx, id)
		switch {
		case errors.Is(err, blob.ErrNotFound):
			if err := m.out.print(line{Gone: &id}); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case len(data) > maxBlob:
			return fmt.Errorf("blob %s of %d bytes: %w", id, len(data), ErrTooLarge)
		}
		if err := m.named.blob(k, data); err != nil {
			return fmt.Errorf("blob %s: %w", id, err)
		}
		data = append([]byte{}, data...) // an empty content is not null
		if err := m.out.print(line{Blob: &data}); err != nil {
			return err
		}
	}
	return nil
}
