package purge

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// rowAt is a row with what its value holds.
type rowAt struct {
	kv.Row
	plain []byte // the value without its text form
}

// unfold decodes the value of a row: one kind is written in base64.
func unfold(row kv.Row) rowAt {
	at := rowAt{Row: row, plain: row.Value}
	if keyspace.Family(row.Key) != "cloudAgent:metadata" {
		return at
	}
	if plain, err := base64.StdEncoding.DecodeString(string(row.Value)); err == nil {
		at.plain = plain
	}
	return at
}

// fold is the inverse of unfold.
func (at *rowAt) fold(plain []byte) []byte {
	if bytes.Equal(at.plain, at.Value) {
		return plain
	}
	return []byte(base64.StdEncoding.EncodeToString(plain))
}

// eachRow calls fn for every row that can be read, except those in quarantine, which
// nothing reads, and those that only list blobs.
func (f *finder) eachRow(ctx context.Context, fn func(rowAt) error) error {
	if err := f.eachRowOf(ctx, f.s.stores.Rows, fn); err != nil {
		return err
	}
	return f.archives(ctx, func(rows kv.Store) error { return f.eachRowOf(ctx, rows, fn) })
}

func (f *finder) eachRowOf(ctx context.Context, rows kv.Store, fn func(rowAt) error) error {
	aside := []kv.Range{keyspace.Quarantine(), keyspace.AllKept(), keyspace.AllLocalOnly()}
	for row, err := range kv.Each(ctx, rows, kv.Range{}, false) {
		if row.Key == "" && err != nil {
			return fmt.Errorf("purge: %w", err)
		}
		if row.Key == pendingKey || slices.ContainsFunc(aside, func(r kv.Range) bool { return r.Contains(row.Key) }) {
			continue
		}
		if err != nil {
			f.unread = append(f.unread, fmt.Errorf("row %q: %w", row.Key, err))
			continue
		}
		if err := fn(unfold(row)); err != nil {
			return err
		}
	}
	return nil
}

// archives calls fn with the rows of each archived conversation that a scan of all
// rows does not show, one conversation at a time. It leaves out the head, which names
// the same as the latest save.
func (f *finder) archives(ctx context.Context, fn func(kv.Store) error) error {
	var ids []string
	for info, err := range f.s.stores.Upkeep.Archived(ctx) {
		if err != nil {
			return fmt.Errorf("purge: %w", err)
		}
		ids = append(ids, info.ID)
	}
	for _, id := range ids {
		copied := memkv.New(nil)
		for _, part := range []kv.Range{
			keyspace.MessageHeads(id), keyspace.Saves(id), keyspace.JSONCheckpoints(id), keyspace.Execs(id), keyspace.AgentEvents(id, 0),
		} {
			if err := f.copyRows(ctx, part, copied); err != nil {
				return err
			}
		}
		if err := f.agentOf(ctx, id, copied); err != nil {
			return err
		}
		if err := fn(copied); err != nil {
			return err
		}
	}
	return nil
}

// agentOf adds the log of the agent that works on an archived conversation.
func (f *finder) agentOf(ctx context.Context, id string, to kv.Store) error {
	info, err := f.s.stores.Conversations.Get(ctx, id)
	if err != nil || info.Agent == "" || info.Agent == id || keyspace.CheckID(info.Agent) != nil {
		return nil // it has none, or what is wrong is found elsewhere
	}
	return f.copyRows(ctx, keyspace.AgentEvents(info.Agent, 0), to)
}

func (f *finder) copyRows(ctx context.Context, in kv.Range, to kv.Store) error {
	b := &kv.Batch{}
	for row, err := range kv.Each(ctx, f.s.stores.Rows, in, false) {
		if err != nil {
			if row.Key == "" {
				return fmt.Errorf("purge: %w", err)
			}
			f.unread = append(f.unread, fmt.Errorf("row %q: %w", row.Key, err))
			continue
		}
		b.Set = append(b.Set, kv.Set{Key: row.Key, Value: row.Value})
	}
	return to.Commit(ctx, b)
}

// row returns the new value of a row, or nil if it stays.
func (r *rewriter) row(row kv.Row) (value []byte, refs []blob.ID, err error) {
	at := unfold(row)
	out, refs := r.swaps.in(at.plain)
	if out == nil {
		out = at.plain
	}
	// The path of a workspace is its identity: if masked, it would be another workspace.
	if masked := r.find.contents.mask(out); masked != nil && !keyspace.Workspaces().Contains(row.Key) {
		out = masked
	}
	if bytes.Equal(out, at.plain) {
		return nil, nil, nil
	}
	return at.fold(withOriginal(row, out)), refs, nil
}

// originals are the rows that proofs show, with the number of the field that keeps
// the hash of their original value.
var originals = []struct {
	rows  kv.Range
	field protowire.Number
}{
	{keyspace.AllSaves(), 13}, {keyspace.Checkpoints(), 28}, {keyspace.Operations(), 19},
}

// withOriginal adds to the new value of a row the hash of the one that it was first
// written with, so that a proof from before the purge can be compared with one from
// after it.
func withOriginal(row kv.Row, value []byte) []byte {
	for _, family := range originals {
		if family.rows.Contains(row.Key) && !hasField(value, family.field) {
			id := blob.Sum(row.Value)
			value = protowire.AppendTag(slices.Clone(value), family.field, protowire.BytesType)
			return protowire.AppendBytes(value, id[:])
		}
	}
	return value
}

// hasField reports whether a message has a field, and true for bytes that are no message.
func hasField(message []byte, field protowire.Number) bool {
	for len(message) > 0 {
		number, _, n := protowire.ConsumeField(message)
		if n < 0 || number == field {
			return true
		}
		message = message[n:]
	}
	return false
}

// ofConversations are the rows that conversation.Store.Rewrite changes.
var ofConversations = []kv.Range{keyspace.Conversations(), keyspace.Heads(), keyspace.AllMessageHeads(), keyspace.AllSaves()}

// rows rewrites all rows. It counts conversations and other rows.
func (r *rewriter) rows(ctx context.Context, res *Result) error {
	talks, others, named := make(map[string]bool), []string(nil), []string(nil)
	err := r.find.eachRow(ctx, func(at rowAt) error {
		if keyspace.AllMessageHeads().Contains(at.Key) && r.find.contents.in([]byte(at.Key)) {
			named = append(named, at.Key)
		}
		value, _, err := r.row(at.Row)
		if err != nil || value == nil {
			return err
		}
		if slices.ContainsFunc(ofConversations, func(in kv.Range) bool { return in.Contains(at.Key) }) {
			talks[keyspace.Parts(at.Key)[2]] = true
		} else {
			others = append(others, at.Key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(talks)) {
		n, err := r.find.s.stores.Conversations.Rewrite(ctx, id, r.row)
		if err != nil {
			if err := res.left(ctx, "conversation "+id, err); err != nil {
				return err
			}
			continue
		}
		if n > 0 {
			res.Conversations++
		}
	}
	for _, key := range others {
		if err := r.oneRow(ctx, key); err != nil {
			if err := res.left(ctx, "row "+key, err); err != nil {
				return err
			}
			continue
		}
		res.Rows++
	}
	for _, key := range named {
		if err := r.rename(ctx, key); err != nil {
			if err := res.left(ctx, "row "+r.find.shown(key), err); err != nil {
				return err
			}
			continue
		}
		res.Rows++
	}
	return nil
}

// rename moves the head of a message whose id holds the bytes. They are masked in the
// message and in the history, too, so that the new key is that of the new id. Other
// keys are ids that stay; the search at the end reports them.
func (r *rewriter) rename(ctx context.Context, key string) error {
	rows := r.find.s.stores.Rows
	row, err := rows.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	now := r.find.shown(key)
	return rows.Commit(ctx, &kv.Batch{
		Expect: []kv.Expect{{Key: key, Version: row.Version}}, Delete: []string{key}, Set: []kv.Set{{Key: now, Value: row.Value}},
	})
}

// shown returns a key without the bytes.
func (f *finder) shown(key string) string {
	if masked := f.contents.mask([]byte(key)); masked != nil {
		return string(masked)
	}
	return key
}

// rowTries is how often a row is read again after another process changed it.
const rowTries = 20

func (r *rewriter) oneRow(ctx context.Context, key string) (err error) {
	rows := r.find.s.stores.Rows
	for range rowTries {
		row, getErr := rows.Get(ctx, key)
		if errors.Is(getErr, kv.ErrNotFound) {
			return nil
		}
		if getErr != nil {
			return getErr
		}
		value, refs, rowErr := r.row(row)
		if rowErr != nil || value == nil {
			return rowErr
		}
		err = rows.Commit(ctx, &kv.Batch{
			Expect: []kv.Expect{{Key: key, Version: row.Version}}, Set: []kv.Set{{Key: key, Value: value}}, Refs: refs,
		})
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
	return err
}

// pendingKey is the row with the blobs that a purge has not removed yet, 32 bytes
// each, including their copies at a remote. The next purge removes them.
var pendingKey = keyspace.Setting("purging")

// pending returns these blobs.
func (s *Service) pending(ctx context.Context) ([]blob.ID, uint64, error) {
	row, err := s.stores.Rows.Get(ctx, pendingKey)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("purge: %w", err)
	}
	var ids []blob.ID
	for raw := range slices.Chunk(row.Value, blob.IDSize) {
		if len(raw) == blob.IDSize {
			ids = append(ids, blob.ID(raw))
		}
	}
	return ids, row.Version, nil
}

// setPending writes the row, or removes it. Ids that do not fit are left out: those
// blobs are found again by their content.
func (s *Service) setPending(ctx context.Context, ids map[blob.ID]bool) error {
	if len(ids) == 0 {
		return s.stores.Rows.Commit(ctx, &kv.Batch{Delete: []string{pendingKey}})
	}
	sorted := slices.SortedFunc(maps.Keys(ids), blob.ID.Compare)
	value := make([]byte, 0, len(ids)*blob.IDSize)
	for _, id := range sorted[:min(len(sorted), kv.MaxValue/blob.IDSize)] {
		value = append(value, id[:]...)
	}
	return s.stores.Rows.Commit(ctx, &kv.Batch{Set: []kv.Set{{Key: pendingKey, Value: value}}})
}
