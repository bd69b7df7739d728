package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Kinds of operations that this package logs. Other packages may log their own.
const (
	OpRewind = "rewind"
	OpUndo   = "undo"
	OpRedo   = "redo"
	OpFork   = "fork"
	OpPin    = "pin"
	OpUnpin  = "unpin"
	OpForget = "forget"
)

// Operation is an entry of the log: author, kind, time, and how to undo it.
type Operation struct {
	// Seq numbers the operations of a store from 1. ID formats it.
	Seq         uint64
	Kind        string
	Author      string
	Time        time.Time
	Description string
	// Workspace and Conversation are its subjects; both may be empty.
	Workspace, Conversation string
	// Origins are the conversations that Conversation was forked from and whose turns are
	// also its own.
	Origins []string
	// Before and After are checkpoints. An operation that has both can be undone.
	Before, After string
	// Target is the checkpoint that a rewind went to.
	Target string
	// RootBefore and RootAfter are states of the conversation, if it was moved.
	RootBefore, RootAfter blob.ID
	// Of is the operation that an undo reverted or a redo repeated.
	Of uint64
	// Scope lists the paths to which a rewind was limited; empty means all.
	Scope []string
	// Files is the number of changed files. Operations of earlier releases also counted
	// directories, which Paths lists.
	Files uint64

	paths   []string // to be stored
	listed  blob.ID  // blob of the stored list
	inPlace bool     // set by Moves
}

// Whole reports whether the operation went to its target as a whole: a rewind of some
// paths restores them, and the work continues where it was. The same is true of a rewind
// that Moves found undone in place, and of its undo.
func (o *Operation) Whole() bool {
	return !o.inPlace && (len(o.Scope) == 0 || o.movedConversation())
}

// Concerns reports whether the operation is one of a conversation: its own, or one of all.
func (o *Operation) Concerns(conversation string) bool {
	return o.Conversation == "" || o.Conversation == conversation || slices.Contains(o.Origins, conversation)
}

// movedConversation reports whether the operation changed the state of its conversation.
func (o *Operation) movedConversation() bool {
	return !o.RootAfter.IsZero() && o.RootAfter != o.RootBefore
}

// Moves returns the operations that took a workspace to a checkpoint and back again, in
// their order. A rewind of a single turn goes to none, so what undoes or repeats it moves
// nothing either, although it has a target.
func Moves(ops []*Operation) []*Operation {
	still, undone := make(map[uint64]bool), undoneInPlace(ops)
	for _, op := range ops {
		still[op.Seq] = op.Target == ""
	}
	var moves []*Operation
	for _, op := range ops {
		if op.Before == "" || op.After == "" || op.Target == "" || still[op.Of] {
			continue
		}
		if undone[op.Seq] {
			marked := *op
			marked.inPlace = true
			op = &marked
		}
		moves = append(moves, op)
	}
	return moves
}

// undoneInPlace finds the rewinds that were undone, and what undid them, where the undo did
// not move the conversation: that goes on from where it is, so the undo brings files back and
// leaves nothing behind. A redo takes the place of the undo, and its rewind counts again.
func undoneInPlace(ops []*Operation) map[uint64]bool {
	in, last := make(map[uint64]bool), make(map[uint64]*Operation)
	for _, op := range slices.SortedFunc(slices.Values(ops), func(a, b *Operation) int { return cmp.Compare(a.Seq, b.Seq) }) {
		before := last[op.Of]
		last[cmp.Or(op.Of, op.Seq)] = op
		if before == nil || op.movedConversation() {
			continue
		}
		switch {
		case op.Kind == OpUndo && (before.Seq == op.Of || in[before.Seq]):
			in[op.Seq], in[op.Of] = true, true
		case op.Kind == OpRedo && in[before.Seq]:
			in[op.Seq], in[op.Of] = true, false
		}
	}
	return in
}

// ID returns the operation's name, such as "op12".
func (o *Operation) ID() string { return fmt.Sprintf("op%d", o.Seq) }

// Append adds an entry to the log as a part of a batch. It sets Seq, and Time if that
// is zero. The commit fails with a conflict if another process added an entry
// meanwhile: rebuild the batch then.
func (s *Service) Append(ctx context.Context, op *Operation, b *kv.Batch) error {
	end, err := s.logEnd(ctx)
	if err != nil {
		return err
	}
	return s.appendAt(ctx, end, op, b)
}

// appendAt is Append for a caller that has already read the end of the log.
func (s *Service) appendAt(ctx context.Context, end logEnd, op *Operation, b *kv.Batch) error {
	if end.seq >= maxNumber {
		return bad("the log of operations is full at %d", end.seq)
	}
	op.Seq = end.seq + 1
	if op.Time.IsZero() {
		op.Time = s.opts.Now().Truncate(time.Millisecond)
	}
	if len(op.paths) > 0 {
		data, err := marshal(&stetv1.PathList{Paths: pathBytes(op.paths)})
		if err != nil {
			return fmt.Errorf("encode operation: %w", err)
		}
		list := blob.New(data)
		if err := s.blobs.Put(ctx, list); err != nil {
			return fmt.Errorf("store operation: %w", err)
		}
		op.listed = list.ID
		b.Refs = append(b.Refs, list.ID)
	}
	var chain []byte
	if end.known {
		chain = end.link[:] // the zero id before the first entry
	}
	data, err := marshal(&stetv1.OperationRecord{
		Format: format, Seq: op.Seq, Kind: op.Kind, Author: op.Author, TimeMs: op.Time.UnixMilli(), Description: op.Description,
		Workspace: op.Workspace, Conversation: op.Conversation, Before: op.Before, After: op.After, Target: op.Target,
		RootBefore: idBytes(op.RootBefore), RootAfter: idBytes(op.RootAfter), Of: op.Of, Files: op.Files, Paths: idBytes(op.listed),
		Scope: pathBytes(op.Scope), Chain: chain, Origins: op.Origins,
	})
	if err != nil {
		return fmt.Errorf("encode operation: %w", err)
	}
	key := keyspace.Operation(op.Seq)
	b.Expect = append(b.Expect, kv.Expect{Key: key})
	b.Set = append(b.Set, kv.Set{Key: key, Value: data})
	return nil
}

// Log adds an entry to the log in its own commit.
func (s *Service) Log(ctx context.Context, op *Operation) error {
	return s.record(ctx, func(ctx context.Context) error {
		b := &kv.Batch{}
		if err := s.Append(ctx, op, b); err != nil {
			return err
		}
		return s.rows.Commit(ctx, b)
	})
}

// record runs a commit that appends to the log, and repeats it if another process
// took the number. It returns other conflicts.
func (s *Service) record(ctx context.Context, commit func(context.Context) error) error {
	const tries = 20
	for try := 1; ; try++ {
		err := commit(ctx)
		var conflict *kv.ConflictError
		if err == nil || try == tries || !errors.As(err, &conflict) || !keyspace.Operations().Contains(conflict.Key) {
			return err
		}
	}
}

func (s *Service) lastOperation(ctx context.Context) (uint64, error) {
	for row, err := range s.rows.Scan(ctx, keyspace.Operations(), kv.ScanOptions{Reverse: true, Limit: 1, KeysOnly: true}) {
		if err != nil {
			return 0, fmt.Errorf("read log of operations: %w", err)
		}
		return keyspace.ParseNumber(keyspace.Last(row.Key))
	}
	return 0, nil
}

// Operations yields the log, newest first.
func (s *Service) Operations(ctx context.Context) iter.Seq2[*Operation, error] {
	return func(yield func(*Operation, error) bool) {
		for row, err := range s.rows.Scan(ctx, keyspace.Operations(), kv.ScanOptions{Reverse: true}) {
			if err != nil {
				yield(nil, fmt.Errorf("read log of operations: %w", err))
				return
			}
			op, err := readOperation(row)
			if !yield(op, err) || err != nil {
				return
			}
		}
	}
}

func decodeOperation(data []byte) (*Operation, error) {
	var m stetv1.OperationRecord
	if err := unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("read operation: %w", err)
	}
	before, err1 := optionalID(m.RootBefore)
	after, err2 := optionalID(m.RootAfter)
	paths, err3 := optionalID(m.Paths)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("read operation %d: %w", m.Seq, err)
	}
	return &Operation{
		Seq: m.Seq, Kind: m.Kind, Author: m.Author, Time: time.UnixMilli(m.TimeMs), Description: m.Description,
		Workspace: m.Workspace, Conversation: m.Conversation, Origins: m.Origins, Before: m.Before, After: m.After, Target: m.Target,
		RootBefore: before, RootAfter: after, Of: m.Of, Files: m.Files, listed: paths,
		Scope: pathStrings(m.Scope),
	}, nil
}

// Paths lists the paths that an operation changed, sorted.
func (s *Service) Paths(ctx context.Context, op *Operation) ([]string, error) {
	if op.listed.IsZero() {
		return nil, nil
	}
	data, err := s.blobs.Get(ctx, op.listed)
	if err != nil {
		return nil, fmt.Errorf("read paths of %s: %w", op.ID(), err)
	}
	var list stetv1.PathList
	if err := proto.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read paths of %s: %w: %v", op.ID(), ErrBadRecord, err)
	}
	return pathStrings(list.Paths), nil
}
