package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// Imported is a checkpoint of another program. It covers only some files of a
// directory.
type Imported struct {
	// Source is its id there. MessageID, Side and Turn say where in the conversation it
	// was taken. A checkpoint that two messages name appears twice.
	Source    string
	MessageID string
	Side      Side
	Turn      uint64
	// Root is the state of the conversation then; zero if it is not known.
	Root blob.ID
	Time time.Time
	// Tree has the files that existed, Absent the paths that did not. Nothing is known
	// about other paths.
	Tree   blob.ID
	Absent []string
	// Outside lists files that it covers but that are outside the directory.
	Outside []string
}

// Reasons why an imported checkpoint does not cover a path.
const (
	reasonPartial workspace.Reason = "not in the imported checkpoint"
	reasonOutside workspace.Reason = "outside the directory"
)

// BranchSource begins the source of checkpoints that were taken in a copy of the directory.
// Like those of another program, they are not part of its sequence; unlike them, they fall
// under the same retention policies as those of the directory itself.
const BranchSource = "stet:"

// importBatch is how many checkpoints one commit adds.
const importBatch = 64

// AddImported adds the checkpoints of a conversation that another program made,
// oldest first. They are listed under the conversation and are not part of the
// sequence of the directory, which need not exist: they do not affect the authors of
// its files. A rewind to one changes only the paths that it covers.
//
// It can be repeated with a longer list: checkpoints that are already stored are
// matched by source, message and side, and changed where they differ. It returns how
// many it added or changed.
func (s *Service) AddImported(ctx context.Context, conversation, directory, author string, list []Imported) (int, error) {
	add := &importing{s: s, conversation: conversation, workspace: WorkspaceID(directory), author: author, known: map[mention]*Record{}}
	for rec, err := range s.ListConversation(ctx, conversation) {
		if err != nil {
			return 0, fmt.Errorf("add imported checkpoints: %w", err)
		}
		if rec.Kind != Import {
			continue
		}
		add.known[mentionOf(rec)] = rec
		if add.last == nil || rec.ID > add.last.ID {
			add.last = rec
		}
	}
	changed := 0
	for part := range slices.Chunk(list, importBatch) {
		n, err := add.commit(ctx, part)
		if err != nil {
			return changed, fmt.Errorf("add imported checkpoints: %w", err)
		}
		changed += n
	}
	return changed, nil
}

// mention identifies an imported checkpoint within its conversation.
type mention struct {
	source, message string
	side            Side
}

func mentionOf(rec *Record) mention { return mention{rec.Source, rec.MessageID, rec.Side} }

// importing adds the imported checkpoints of one conversation.
type importing struct {
	s                               *Service
	conversation, workspace, author string
	known                           map[mention]*Record
	last                            *Record // the newest one, or nil
	before                          *Record // the one before in the list, or nil
}

func (add *importing) commit(ctx context.Context, part []Imported) (n int, err error) {
	b := &kv.Batch{}
	for i := range part {
		rec, err := add.record(ctx, &part[i], b)
		if err != nil {
			return 0, err
		}
		add.before = rec
	}
	if len(b.Set) == 0 {
		return 0, nil
	}
	for _, set := range b.Set {
		if keyspace.Checkpoints().Contains(set.Key) {
			n++
		}
	}
	return n, add.s.rows.Commit(ctx, b)
}

// record adds one checkpoint to a batch, unless it is stored already.
func (add *importing) record(ctx context.Context, one *Imported, b *kv.Batch) (*Record, error) {
	rec := &Record{
		Kind: Import, Received: true, Source: one.Source, Workspace: add.workspace, Conversation: add.conversation, Root: one.Root,
		MessageID: one.MessageID, Turn: one.Turn, Side: one.Side, Author: add.author, Time: importedTime(one.Time), Tree: one.Tree,
	}
	list, err := importedList(one)
	if err != nil {
		return nil, err
	}
	rec.notCaptured, rec.NotCaptured = list.ID, uint64(1+len(one.Outside))
	old := add.known[mentionOf(rec)]
	if err := add.place(rec, old); err != nil {
		return nil, err
	}
	if err := add.s.blobs.Put(ctx, list); err != nil {
		return nil, err
	}
	if err := add.count(ctx, rec); err != nil {
		return nil, err
	}
	data, err := rec.encode()
	if err != nil {
		return nil, err
	}
	key := keyspace.Checkpoint(rec.ID)
	if old != nil {
		if was, err := old.encode(); err == nil && string(was) == string(data) {
			return old, nil
		}
		rec.version = old.version
	}
	refs, err := newRefs(ctx, add.s.blobs, blob.ID{}, rec.Tree)
	if err != nil {
		return nil, err
	}
	b.Refs = append(append(b.Refs, refs...), known(rec.Root, rec.notCaptured)...)
	b.Expect = append(b.Expect, kv.Expect{Key: key, Version: rec.version})
	b.Set = append(b.Set, kv.Set{Key: key, Value: data}, kv.Set{Key: keyspace.ConversationCheckpoint(rec.Conversation, rec.ID)})
	add.known[mentionOf(rec)] = rec
	return rec, nil
}

// place gives a checkpoint its id, number and parent: those that it already has, or
// the next.
func (add *importing) place(rec, old *Record) error {
	if old != nil {
		rec.ID, rec.Number, rec.Parent = old.ID, old.Number, old.Parent
		return nil
	}
	id, err := importedID(rec, add.last)
	if err != nil {
		return err
	}
	rec.ID, rec.Number = id, 1
	if add.last != nil {
		rec.Number, rec.Parent = add.last.Number+1, add.last.ID
	}
	add.last = rec
	return nil
}

// importedID derives an id from the time and the source, so that two imports of the same
// checkpoint at the same time give it the same one. Ids grow with the numbers.
func importedID(rec, last *Record) (string, error) {
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(rec.Time)); err != nil {
		return "", fmt.Errorf("make checkpoint id: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", rec.Conversation, rec.Source, rec.MessageID, rec.Side))
	copy(id[6:], sum[:])
	text := strings.ToLower(id.String())
	if last == nil || text > last.ID {
		return text, nil
	}
	return nextID(time.UnixMilli(0), last.ID)
}

// importedTime returns a time that a record can hold.
func importedTime(at time.Time) time.Time {
	if checkTime(at) != nil {
		at = time.UnixMilli(0)
	}
	return at.Truncate(time.Millisecond)
}

// importedList describes what an imported checkpoint does not cover.
func importedList(one *Imported) (blob.Blob, error) {
	absent := slices.Clone(one.Absent)
	slices.Sort(absent)
	list := &stetv1.NotCapturedList{
		Entries: []*stetv1.NotCaptured{{Reason: string(reasonPartial), Dir: true}}, Absent: pathBytes(slices.Compact(absent)),
	}
	for _, uri := range slices.Sorted(slices.Values(one.Outside)) {
		list.Entries = append(list.Entries, &stetv1.NotCaptured{Path: []byte(uri), Reason: string(reasonOutside)})
	}
	data, err := marshal(list)
	if err != nil {
		return blob.Blob{}, fmt.Errorf("encode what was not captured: %w", err)
	}
	return blob.New(data), nil
}

// count fills in the differences from the checkpoint before.
func (add *importing) count(ctx context.Context, rec *Record) (err error) {
	if add.before == nil {
		rec.FilesChanged, err = countFiles(ctx, add.s.blobs, rec.Tree)
		return err
	}
	changes, err := workspace.Diff(ctx, add.s.blobs, add.before.Tree, rec.Tree)
	if err == nil {
		changes, err = add.s.Comparable(ctx, changes, add.before, rec)
	}
	if err != nil {
		return err
	}
	return (&Workspace{s: add.s}).count(ctx, changes, rec)
}

// keptWithConversation reports whether a checkpoint is exempt from policies, because
// it was imported from another program and its conversation exists.
func (s *Service) keptWithConversation(ctx context.Context, rec *Record) (bool, error) {
	if !rec.partial() {
		return false, nil
	}
	_, err := s.rows.Get(ctx, keyspace.Conversation(rec.Conversation))
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	if kv.Damaged(err) {
		return true, nil
	}
	return err == nil, err
}

// ForgetImported adds to a batch the removal of the imported checkpoints of a
// conversation. Callers that delete a conversation add it to the deletion.
func (s *Service) ForgetImported(ctx context.Context, conversation string, b *kv.Batch) error {
	for rec, err := range s.ListConversation(ctx, conversation) {
		var unread *UnreadableError
		if errors.As(err, &unread) {
			continue // it may be one of the directory
		}
		if err != nil {
			return fmt.Errorf("forget imported checkpoints: %w", err)
		}
		if rec.Kind == Import {
			b.Delete = append(b.Delete, keyspace.Checkpoint(rec.ID), keyspace.ConversationCheckpoint(conversation, rec.ID))
		}
	}
	return nil
}
