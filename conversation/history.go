package conversation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// HistoryOptions select saves of a history; nil selects all, oldest first.
type HistoryOptions struct {
	// From and To limit the numbers of the saves, both inclusive; 0 means no limit.
	From, To uint64
	// Newest returns the newest saves first.
	Newest bool
	// Limit ends the walk after that many saves; 0 means no limit.
	Limit int
}

// History returns the saves of a conversation, on all branches, by number.
func (s *Store) History(ctx context.Context, id string, opts *HistoryOptions) iter.Seq2[Save, error] {
	if opts == nil {
		opts = &HistoryOptions{}
	}
	r := keyspace.Saves(id)
	if opts.From > 0 {
		r.Start = keyspace.Save(id, opts.From)
	}
	if opts.To > 0 && opts.To+1 != 0 {
		r.End = keyspace.Save(id, opts.To+1)
	}
	return func(yield func(Save, error) bool) {
		if _, _, err := s.record(ctx, id); err != nil {
			yield(Save{}, err)
			return
		}
		for row, err := range s.rows.Scan(ctx, r, kv.ScanOptions{Reverse: opts.Newest, Limit: opts.Limit}) {
			if err != nil {
				yield(Save{}, fmt.Errorf("read history of %s: %w", id, err))
				return
			}
			save, err := decodeSave(row)
			if !yield(save, err) || err != nil {
				return
			}
		}
	}
}

// ListedSave is a save and the conversation that it belongs to.
type ListedSave struct {
	Conversation string
	Save
}

// Saves returns the saves of all conversations: those of one conversation follow each
// other, newest first. It reads rows in order, without a query for each conversation, as
// readers of a whole store need. An unreadable row yields an error that is Damaged, with
// its conversation; the rows after it follow.
func (s *Store) Saves(ctx context.Context) iter.Seq2[ListedSave, error] {
	return func(yield func(ListedSave, error) bool) {
		for row, err := range kv.Each(ctx, s.rows, keyspace.AllSaves(), true) {
			if row.Key == "" {
				yield(ListedSave{}, fmt.Errorf("read saves: %w", err))
				return
			}
			listed := ListedSave{Conversation: keyspace.Parts(row.Key)[2]}
			if err == nil {
				listed.Save, err = decodeSave(row)
			}
			if !yield(listed, err) {
				return
			}
		}
	}
}

// SaveAt returns one save of a conversation.
func (s *Store) SaveAt(ctx context.Context, id string, seq uint64) (Save, error) {
	save, _, err := s.saveAt(ctx, id, seq)
	return save, err
}

func (s *Store) saveAt(ctx context.Context, id string, seq uint64) (Save, uint64, error) {
	if err := checkID("conversation", id); err != nil {
		return Save{}, 0, err
	}
	row, err := s.rows.Get(ctx, keyspace.Save(id, seq))
	if errors.Is(err, kv.ErrNotFound) {
		return Save{}, 0, fmt.Errorf("save %d of conversation %s: %w", seq, id, ErrNotFound)
	}
	if err != nil {
		return Save{}, 0, fmt.Errorf("read save %d of conversation %s: %w", seq, id, err)
	}
	save, err := decodeSave(row)
	return save, row.Version, err
}

// MessageHead returns the root at a message, or ErrNotFound.
func (s *Store) MessageHead(ctx context.Context, id, message string) (blob.ID, error) {
	if err := errors.Join(checkID("conversation", id), checkID("message", message)); err != nil {
		return blob.ID{}, err
	}
	row, err := s.rows.Get(ctx, keyspace.MessageHead(id, message))
	if errors.Is(err, kv.ErrNotFound) {
		return blob.ID{}, fmt.Errorf("message %s of conversation %s: %w", message, id, ErrNotFound)
	}
	if err != nil {
		return blob.ID{}, fmt.Errorf("read message %s of conversation %s: %w", message, id, err)
	}
	return parseHead(row)
}

// MessageHeads returns the messages with a root, ordered by id.
func (s *Store) MessageHeads(ctx context.Context, id string) iter.Seq2[MessagePointer, error] {
	return func(yield func(MessagePointer, error) bool) {
		for row, err := range s.rows.Scan(ctx, keyspace.MessageHeads(id), kv.ScanOptions{}) {
			if err != nil {
				yield(MessagePointer{}, fmt.Errorf("read messages of %s: %w", id, err))
				return
			}
			root, err := parseHead(row)
			if !yield(MessagePointer{MessageID: keyspace.Last(row.Key), Root: root}, err) || err != nil {
				return
			}
		}
	}
}

// MessagePointer is a message and its root.
type MessagePointer struct {
	MessageID string
	Root      blob.ID
}

// Branch is a line of saves up to one without a successor.
type Branch struct {
	// Label is the branch's label, empty for the first one.
	Label string
	// Tip is its last save.
	Tip Save
	// Base is the save at which it leaves a branch with an earlier tip; 0 if there is
	// none.
	Base uint64
	// Current means that Tip is the current save.
	Current bool
}

// Branches returns the branches of a conversation, oldest tip first. The current one
// is always last.
func (s *Store) Branches(ctx context.Context, id string) ([]Branch, error) {
	parents := make(map[uint64]uint64)
	continued := make(map[uint64]bool)
	var saves []Save
	for save, err := range s.History(ctx, id, nil) {
		if err != nil {
			return nil, err
		}
		parents[save.Seq] = save.Parent
		continued[save.Parent] = true
		saves = append(saves, save)
	}
	saves = slices.DeleteFunc(saves, func(s Save) bool { return continued[s.Seq] })
	branches := make([]Branch, len(saves))
	taken := make(map[uint64]bool)
	for i, tip := range saves {
		branches[i] = Branch{Label: tip.Branch, Tip: tip, Current: i == len(saves)-1}
		// parents has no entry for removed saves, so the walk ends there.
		for seq := tip.Seq; seq > 0; seq = parents[seq] {
			if taken[seq] {
				branches[i].Base = seq
				break
			}
			taken[seq] = true
		}
	}
	return branches, nil
}

// RewindOptions configure a rewind; nil gives the defaults.
type RewindOptions struct {
	Author string
	// Branch labels the new branch; by default "after-N" with the number of the
	// target save.
	Branch string
	// Extend is as in SaveOptions.
	Extend func(Save, *kv.Batch) error
}

// Rewind makes the state of an earlier save the current one. It appends a save whose
// parent is that one, so everything saved since stays as a branch. An unsaved draft
// is discarded.
func (c *Conversation) Rewind(ctx context.Context, seq uint64, opts *RewindOptions) (Save, error) {
	if opts == nil {
		opts = &RewindOptions{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.rewindLocked(ctx, opts, func() (Save, []kv.Expect, error) { return c.rewindTarget(ctx, seq) })
	if err != nil {
		return Save{}, fmt.Errorf("rewind conversation %s to save %d: %w", c.id, seq, err)
	}
	return s, nil
}

// StartOver is Rewind to the state before the first save, which is empty. All saves stay
// as a branch.
func (c *Conversation) StartOver(ctx context.Context, opts *RewindOptions) (Save, error) {
	if opts == nil {
		opts = &RewindOptions{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.rewindLocked(ctx, opts, func() (Save, []kv.Expect, error) { return Save{Root: EmptyRoot()}, nil, nil })
	if err != nil {
		return Save{}, fmt.Errorf("start conversation %s over: %w", c.id, err)
	}
	return s, nil
}

func (c *Conversation) rewindLocked(ctx context.Context, opts *RewindOptions, to func() (Save, []kv.Expect, error)) (Save, error) {
	switch {
	case !c.writable:
		return Save{}, ErrReadOnly
	case c.stale:
		return Save{}, ErrStale
	}
	if err := c.clearDoubt(ctx); err != nil {
		return Save{}, err
	}
	target, expect, err := to()
	if err != nil {
		return Save{}, err
	}
	next, err := nextSeq(c.head.Seq)
	if err != nil {
		return Save{}, err
	}
	c.discardLocked()
	branch := opts.Branch
	if branch == "" {
		branch = fmt.Sprintf("after-%d", target.Seq)
	}
	a := &attempt{
		save: Save{
			Seq: next, Parent: target.Seq, Root: target.Root, MessageID: target.MessageID,
			Author: opts.Author, Turns: target.Turns, Kind: KindRewind, Branch: branch, RewoundFrom: c.head.Seq, Turn: target.Turn,
		},
		root:   blob.Blob{ID: target.Root},
		expect: expect,
		extend: opts.Extend,
	}
	a.save.Time = c.store.now()
	c.exact = target.Root
	if err := c.commit(ctx, a); err != nil {
		c.exact = blob.ID{}
		return Save{}, err
	}
	c.adopt(a)
	return a.save, nil
}

// rewindTarget returns the save to go to, and what the commit expects.
func (c *Conversation) rewindTarget(ctx context.Context, seq uint64) (Save, []kv.Expect, error) {
	target, version, err := c.store.saveAt(ctx, c.id, seq)
	if err != nil {
		return Save{}, nil, err
	}
	if _, err := c.store.loadState(ctx, c.id, target.Root); err != nil {
		return Save{}, nil, err // do not rewind to an unreadable state
	}
	// While the target exists, a collector keeps everything it reaches.
	return target, []kv.Expect{{Key: keyspace.Save(c.id, seq), Version: version}}, nil
}

// EmptyRoot is the root of a state without turns, in which every conversation begins.
func EmptyRoot() blob.ID { return blob.Sum(nil) }
