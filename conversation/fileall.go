package conversation

import (
	"context"
	"errors"
	"fmt"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/abreast"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Unfiled reports whether FileAll has more to do than creating the next conversation does
// along the way.
func (s *Store) Unfiled(ctx context.Context) (bool, error) {
	f, err := s.loadFilters(ctx)
	if err == nil {
		return !f.built, nil
	}
	if Damaged(err) {
		return false, nil // it cannot be done
	}
	if !errors.Is(err, kv.ErrNotFound) {
		return false, err
	}
	n := 0
	for _, err := range s.rows.Scan(ctx, keyspace.Conversations(), kv.ScanOptions{KeysOnly: true, Limit: filePage + 1}) {
		if err != nil {
			return false, fmt.Errorf("read filters: %w", err)
		}
		n++
	}
	return n > filePage, nil
}

// filePage is how many conversations one commit of FileAll lists.
const filePage = 500

// FileAll lists the conversations of an earlier release under their workspaces and
// agents; after that, filtered lists need not read all conversations. It returns at once
// if that is already done, and continues where a killed call stopped. It may run
// alongside writers and other processes that do the same. progress, if not nil, is called
// with the number of conversations read.
func (s *Store) FileAll(ctx context.Context, progress func(done int)) error {
	done, conflicts := 0, 0
	for {
		s.filters.Store(nil) // read it again
		f, err := s.makeFilters(ctx)
		if err != nil || f == nil || f.built {
			return err
		}
		// A save of one of the conversations makes the commit fail, so smaller commits
		// succeed alongside many writers.
		n, err := s.fileSome(ctx, f, filePage>>conflicts)
		if errors.Is(err, kv.ErrConflict) && conflicts < attempts {
			conflicts++
			continue // a writer, or another process that does the same
		}
		if err != nil {
			return fmt.Errorf("list conversations by workspace and agent: %w", err)
		}
		conflicts = 0
		if done += n; progress != nil {
			progress(done)
		}
	}
}

// fileSome lists the next conversations and records how far it got. An unreadable
// conversation is not listed.
func (s *Store) fileSome(ctx context.Context, f *filters, size int) (int, error) {
	b := &kv.Batch{Expect: []kv.Expect{{Key: filtersKey, Version: f.version}}}
	in, n := keyspace.Conversations(), 0
	if f.done != "" {
		in.Start = keyspace.Conversation(f.done) + "\x00"
	} else if f.version == 0 {
		b.DeleteRange = []kv.Range{keyspace.AllConversationsOf()} // of a salt that was lost
	}
	next := &filters{salt: f.salt, built: true}
	var recs []*stetv1.ConversationRecord
	for row, err := range kv.Each(ctx, s.rows, in, false) {
		if err != nil && row.Key == "" {
			return 0, err
		}
		if n == max(size, 1) {
			next.built = false
			break
		}
		n++
		next.done = keyspace.Last(row.Key)
		rec := new(stetv1.ConversationRecord)
		if err == nil {
			rec, err = decodeConversation(row)
		}
		if err != nil {
			continue
		}
		recs = append(recs, rec)
		b.Expect = append(b.Expect, kv.Expect{Key: row.Key, Version: row.Version})
	}
	if err := s.fileRecords(ctx, f, recs, b); err != nil {
		return 0, err
	}
	b.Set = append(b.Set, kv.Set{Key: filtersKey, Value: next.row()})
	return n, s.rows.Commit(ctx, b)
}

// fileRecords adds the rows that list conversations to a batch. The batch expects their
// places in the order of all, which every save changes: the head and the history of an
// archived conversation cannot be expected without bringing it back.
func (s *Store) fileRecords(ctx context.Context, f *filters, recs []*stetv1.ConversationRecord, b *kv.Batch) error {
	places, errs := abreast.Each(recs, maxAhead, func(rec *stetv1.ConversationRecord) (place, error) { return s.placeOf(ctx, rec) })
	for i, rec := range recs {
		if err := errs[i]; Damaged(err) {
			continue
		} else if err != nil {
			return err
		}
		b.Expect = append(b.Expect, places[i].expect)
		b.Delete = append(b.Delete, f.earlier(rec)...)
		for _, key := range f.keys(rec, places[i].at) {
			b.Set = append(b.Set, kv.Set{Key: key})
		}
	}
	return nil
}

// place is where a conversation is in the order of all.
type place struct {
	at     int64
	expect kv.Expect // holds until the next save
}

func (s *Store) placeOf(ctx context.Context, rec *stetv1.ConversationRecord) (place, error) {
	last, err := s.lastSave(ctx, rec.GetId())
	if err != nil {
		return place{}, err
	}
	p := place{at: infoOf(rec, last).Updated.UnixMilli()}
	p.expect.Key = keyspace.ByTime(p.at, rec.GetId())
	row, err := s.rows.Get(ctx, p.expect.Key)
	if errors.Is(err, kv.ErrNotFound) {
		again, err := s.lastSave(ctx, rec.GetId())
		if err == nil && again.Seq != last.Seq {
			err = kv.ErrConflict // a save came in between
		}
		return p, err // otherwise the row is lost, which a check reports
	}
	p.expect.Version = row.Version
	return p, err
}
