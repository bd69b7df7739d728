package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Policy decides which saves are kept. The current save of a conversation and pinned
// ones are always kept, unless DropConversations is set. The zero Policy keeps
// everything.
type Policy struct {
	// MaxAge removes saves that are older.
	MaxAge time.Duration
	// MaxSaves removes all but that many of the newest saves of a conversation.
	MaxSaves int
	// MaxBytes removes the oldest saves until the stored blobs of all
	// conversations take no more.
	MaxBytes int64
	// DropConversations allows MaxBytes to remove whole conversations without pins,
	// least recently changed first, if removing saves is not enough.
	DropConversations bool
}

// Retained is a save with the data that a policy needs.
type Retained struct {
	Conversation string
	Save         Save
	Pinned       bool
	Current      bool
	// Bytes is what removing this save frees after everything before it in
	// RemovalOrder is removed.
	Bytes int64
}

// RetentionPlan lists what a policy removes.
type RetentionPlan struct {
	// Saves are the numbers of the saves to remove, by conversation.
	Saves map[string][]uint64
	// Conversations are removed as a whole.
	Conversations []string
	// Heads are the current saves of Conversations when the plan was made.
	Heads map[string]uint64
	// Freed estimates the bytes that the next collection frees, if the policy has a
	// budget.
	Freed int64
}

// RemovalOrder sorts saves in the order in which a budget removes them: first the
// oldest that are not current, then the current ones, then pinned ones, which it
// never removes.
func RemovalOrder(saves []Retained) {
	rank := func(r Retained) int {
		switch {
		case r.Pinned:
			return 2
		case r.Current:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(saves, func(a, b Retained) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.Save.Time.Compare(b.Save.Time),
			cmp.Compare(a.Conversation, b.Conversation), cmp.Compare(a.Save.Seq, b.Save.Seq))
	})
}

// PlanRetention decides what a policy removes. It changes nothing.
func PlanRetention(saves []Retained, p Policy, now time.Time) RetentionPlan {
	saves = slices.Clone(saves)
	RemovalOrder(saves)
	plan := RetentionPlan{Saves: make(map[string][]uint64), Heads: make(map[string]uint64)}
	var total int64
	newer := make(map[string]int) // saves of the conversation that are newer and unpinned or current
	pinned := make(map[string]bool)
	for _, r := range saves {
		total += r.Bytes
		newer[r.Conversation]++
		pinned[r.Conversation] = pinned[r.Conversation] || r.Pinned
	}
	for _, r := range saves {
		if r.Pinned || r.Current {
			continue
		}
		tooOld := p.MaxAge > 0 && now.Sub(r.Save.Time) > p.MaxAge
		tooMany := p.MaxSaves > 0 && newer[r.Conversation] > p.MaxSaves
		tooLarge := p.MaxBytes > 0 && total > p.MaxBytes
		if tooOld || tooMany || tooLarge {
			plan.Saves[r.Conversation] = append(plan.Saves[r.Conversation], r.Save.Seq)
			newer[r.Conversation]--
			total -= r.Bytes
			plan.Freed += r.Bytes
		}
	}
	for _, r := range saves {
		if r.Current && !r.Pinned && p.DropConversations && p.MaxBytes > 0 && total > p.MaxBytes && !pinned[r.Conversation] {
			plan.Conversations = append(plan.Conversations, r.Conversation)
			plan.Heads[r.Conversation] = r.Save.Seq
			delete(plan.Saves, r.Conversation)
			total -= r.Bytes
			plan.Freed += r.Bytes
		}
	}
	return plan
}

// Retainable returns all saves for PlanRetention, except those of conversations with
// an unreadable save. It measures bytes only if sizes, which lists the blobs, is not
// nil; that requires a walk through everything.
func (s *Store) Retainable(ctx context.Context, sizes blob.Lister) ([]Retained, error) {
	pins, err := s.Pins(ctx)
	if err != nil {
		return nil, err
	}
	type name struct {
		conversation string
		seq          uint64
	}
	pinned := make(map[name]bool)
	for _, p := range pins {
		pinned[name{p.Conversation, p.Seq}] = true
	}
	var all []Retained
	damaged := make(map[string]bool)
	for row, err := range kv.Each(ctx, s.rows, keyspace.AllSaves(), false) {
		if err != nil && (row.Key == "" || !Damaged(err)) {
			return nil, fmt.Errorf("read histories: %w", err)
		}
		id := keyspace.Parts(row.Key)[2]
		var save Save
		if err == nil {
			save, err = decodeSave(row)
		}
		if err != nil {
			damaged[id] = true
			continue
		}
		if n := len(all); n > 0 && all[n-1].Conversation == id {
			all[n-1].Current = false
		}
		all = append(all, Retained{Conversation: id, Save: save, Pinned: pinned[name{id, save.Seq}], Current: true})
	}
	// The value of the rest is unknown in a history with a gap: all of it stays.
	all = slices.DeleteFunc(all, func(r Retained) bool { return damaged[r.Conversation] })
	if sizes == nil {
		return all, nil
	}
	return all, s.measure(ctx, all, sizes)
}

// ApplyRetention carries out a plan, one commit for each conversation. A save that
// was pinned since the plan was made stays, and so does a conversation that was
// pinned or continued since. The next collection removes the blobs. It returns how
// many saves were removed from conversations that stay. It removes nothing from an
// unreadable conversation; the error names it after the others are done.
func (s *Store) ApplyRetention(ctx context.Context, plan RetentionPlan) (int, error) {
	removed := 0
	var damaged []error
	for _, id := range plan.Conversations {
		head, planned := plan.Heads[id]
		err := s.deleteIf(ctx, id, nil, func(last Save, pinned bool) bool {
			return !pinned && (!planned || last.Seq == head)
		})
		if Damaged(err) {
			damaged = append(damaged, err)
			continue
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return removed, err
		}
	}
	for id, seqs := range plan.Saves {
		n, err := s.removeSaves(ctx, id, seqs)
		for tries := 1; errors.Is(err, kv.ErrConflict) && tries < attempts; tries++ {
			n, err = s.removeSaves(ctx, id, seqs) // a save or a pin was added in between
		}
		if Damaged(err) {
			damaged = append(damaged, fmt.Errorf("remove saves of conversation %s: %w", id, err))
			continue
		}
		if err != nil {
			return removed, fmt.Errorf("remove saves of conversation %s: %w", id, err)
		}
		removed += n
	}
	return removed, errors.Join(damaged...)
}

// removeSaves removes saves and the pointers of messages without other saves.
func (s *Store) removeSaves(ctx context.Context, id string, seqs []uint64) (int, error) {
	last, err := s.lastSave(ctx, id)
	if err != nil {
		return 0, err
	}
	unwanted, noPin, err := s.unpinned(ctx, id, seqs)
	if err != nil {
		return 0, err
	}
	delete(unwanted, last.Seq)
	batch := &kv.Batch{Expect: []kv.Expect{{Key: keyspace.Save(id, last.Seq+1)}, noPin}}
	stays := make(map[blob.ID]bool) // roots; false for removed ones
	for save, err := range s.History(ctx, id, nil) {
		if errors.Is(err, ErrNotFound) {
			return 0, nil // deleted meanwhile
		}
		if err != nil {
			return 0, err
		}
		if unwanted[save.Seq] {
			batch.Delete = append(batch.Delete, keyspace.Save(id, save.Seq))
			if !stays[save.Root] {
				stays[save.Root] = false // removed unless another save has it
			}
		} else {
			stays[save.Root] = true
		}
	}
	removed := len(batch.Delete)
	if removed == 0 {
		return 0, nil
	}
	for m, err := range s.MessageHeads(ctx, id) {
		if err != nil {
			return 0, err
		}
		if stay, known := stays[m.Root]; known && !stay {
			batch.Delete = append(batch.Delete, keyspace.MessageHead(id, m.MessageID))
		}
	}
	batch.Set = []kv.Set{changed(id)}
	return removed, s.rows.Commit(ctx, batch)
}

// unpinned returns the saves without pins, and expectations that fail if that
// changes.
func (s *Store) unpinned(ctx context.Context, id string, seqs []uint64) (map[uint64]bool, kv.Expect, error) {
	out := make(map[uint64]bool, len(seqs))
	for _, seq := range seqs {
		out[seq] = true
	}
	pins, noPin, err := s.pinsNow(ctx)
	if err != nil {
		return nil, kv.Expect{}, err
	}
	for _, p := range pins {
		if p.Conversation == id {
			delete(out, p.Seq)
		}
	}
	return out, noPin, nil
}
