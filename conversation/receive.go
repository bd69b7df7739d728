package conversation

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Records holds a conversation as a store keeps it, with everything that its records say,
// for a copy in another store.
type Records struct {
	ID string
	// Conversation is the record, nil if the store has no such conversation.
	Conversation *stetv1.ConversationRecord
	// Saves are by number.
	Saves []*stetv1.SaveRecord

	version uint64 // of the row of Conversation
}

// Head returns the current save, or nil.
func (r *Records) Head() *stetv1.SaveRecord {
	if len(r.Saves) == 0 {
		return nil
	}
	return r.Saves[len(r.Saves)-1]
}

// listedAt is the time in the list of conversations.
func (r *Records) listedAt() int64 {
	if head := r.Head(); head != nil {
		return head.GetTimeMs()
	}
	return r.Conversation.GetCreatedAtMs()
}

// Records returns the records of a conversation. If other readers would reject one of
// them, the error is Damaged.
func (s *Store) Records(ctx context.Context, id string) (*Records, error) {
	out := &Records{ID: id}
	row, err := s.rows.Get(ctx, keyspace.Conversation(id))
	if errors.Is(err, kv.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if out.Conversation, err = decodeConversation(row); err != nil {
		return nil, err
	}
	out.version = row.Version
	for row, err := range s.rows.Scan(ctx, keyspace.Saves(id), kv.ScanOptions{}) {
		if err != nil {
			return nil, err
		}
		if err := CheckRow(row); err != nil {
			return nil, err
		}
		save := new(stetv1.SaveRecord)
		if err := proto.Unmarshal(row.Value, save); err != nil {
			return nil, err
		}
		out.Saves = append(out.Saves, save)
	}
	return out, nil
}

// Commit applies a batch, like the method of a kv.Store.
type Commit func(ctx context.Context, b *kv.Batch) error

// Receiver appends saves that were made in another store. Each call is one commit, so an
// interrupted receiver leaves the conversation at a complete save. Records that a reader
// would reject are rejected before any of them is written. A Receiver is not safe for
// concurrent use.
type Receiver struct {
	store  *Store
	commit Commit
	have   *Records
	ours   bool // this receiver has taken over the conversation
}

// Receive returns a receiver for a conversation whose records are known. commit, if not
// nil, is called instead of the Commit of the rows: the caller can then send blobs again
// that a collector has removed meanwhile.
func (s *Store) Receive(have *Records, commit Commit) *Receiver {
	if commit == nil {
		commit = s.rows.Commit
	}
	return &Receiver{store: s, commit: commit, have: have}
}

// Have returns the records including the appended saves. They belong to the receiver.
func (r *Receiver) Have() *Records { return r.have }

// Create creates the conversation without saves, from the record of another store.
// Writers of that store cannot write here. It fails with kv.ErrConflict if the
// conversation exists.
func (r *Receiver) Create(ctx context.Context, from *stetv1.ConversationRecord) error {
	rec := proto.CloneOf(from)
	rec.Epoch, rec.Writer = 1, newWriter()
	value, err := marshal(rec)
	if err != nil {
		return err
	}
	key := keyspace.Conversation(rec.GetId())
	err = r.store.commitNew(ctx, rec, &kv.Batch{
		Expect: []kv.Expect{{Key: key}, {Key: keyspace.Head(rec.GetId())}},
		Set:    []kv.Set{{Key: key, Value: value}, {Key: keyspace.ByTime(rec.GetCreatedAtMs(), rec.GetId())}, changed(rec.GetId())},
	}, r.apply)
	if err != nil {
		return err
	}
	r.have.Conversation = rec
	return r.own(ctx)
}

// Received is a save of another store, with its number here, and the blobs that it newly
// refers to.
type Received struct {
	Save *stetv1.SaveRecord
	Refs []blob.ID
}

// Append adds one save, which already has its number in this store and becomes the
// current one. refs are the blobs that it newly refers to.
func (r *Receiver) Append(ctx context.Context, save *stetv1.SaveRecord, refs []blob.ID) error {
	return r.AppendAll(ctx, []Received{{save, refs}})
}

// AppendAll adds saves in one commit; the last one becomes the current one. The first call
// also takes over the conversation, which makes other writers stale. It fails with
// kv.ErrConflict if another writer was faster.
func (r *Receiver) AppendAll(ctx context.Context, saves []Received) error {
	if len(saves) == 0 {
		return nil
	}
	id, last := r.have.ID, r.have.Head().GetSeq()
	newest := saves[len(saves)-1].Save
	b := &kv.Batch{
		Expect: []kv.Expect{{Key: keyspace.Conversation(id), Version: r.have.version}},
		Delete: []string{keyspace.ByTime(r.have.listedAt(), id)},
		Set: []kv.Set{
			{Key: keyspace.Head(id), Value: hexRoot(newest)},
			{Key: keyspace.ByTime(newest.GetTimeMs(), id)},
			changed(id),
		},
	}
	// A save of another writer does not change the record; its number shows it.
	if after := last + 1; after < saves[0].Save.GetSeq() {
		b.Expect = append(b.Expect, kv.Expect{Key: keyspace.Save(id, after)})
	}
	messages := make(map[string]int) // their places in Set
	for _, one := range saves {
		save := one.Save
		if save.GetSeq() <= last {
			return fmt.Errorf("%w: save %d does not follow save %d", kv.ErrInvalidBatch, save.GetSeq(), last)
		}
		last = save.GetSeq()
		value, err := marshal(save)
		if err != nil {
			return err
		}
		b.Expect = append(b.Expect, kv.Expect{Key: keyspace.Save(id, last)})
		b.Set = append(b.Set, kv.Set{Key: keyspace.Save(id, last), Value: value})
		b.Refs = append(b.Refs, one.Refs...)
		message := save.GetMessageId()
		if message == "" {
			continue
		}
		if at, twice := messages[message]; twice {
			b.Set[at].Value = hexRoot(save)
			continue
		}
		messages[message] = len(b.Set)
		b.Set = append(b.Set, kv.Set{Key: keyspace.MessageHead(id, message), Value: hexRoot(save)})
	}
	if err := r.takeOver(b); err != nil {
		return err
	}
	if err := r.store.commitFiled(ctx, r.have.Conversation, r.have.listedAt(), newest.GetTimeMs(), b, r.apply); err != nil {
		return err
	}
	for _, one := range saves {
		r.have.Saves = append(r.have.Saves, one.Save)
	}
	return r.own(ctx)
}

// hexRoot is the value of a pointer to a save.
func hexRoot(save *stetv1.SaveRecord) []byte { return fmt.Appendf(nil, "%x", save.GetRoot()) }

// takeOver adds a new epoch to the first batch.
func (r *Receiver) takeOver(b *kv.Batch) error {
	if r.ours {
		return nil
	}
	rec := proto.CloneOf(r.have.Conversation)
	if rec.GetEpoch() >= MaxSeq {
		return fmt.Errorf("%w: the epochs of conversation %s are exhausted", kv.ErrInvalidBatch, r.have.ID)
	}
	rec.Epoch, rec.Writer = rec.GetEpoch()+1, newWriter()
	value, err := marshal(rec)
	if err != nil {
		return err
	}
	b.Set = append(b.Set, kv.Set{Key: keyspace.Conversation(r.have.ID), Value: value})
	return nil
}

// apply commits rows that readers accept.
func (r *Receiver) apply(ctx context.Context, b *kv.Batch) error {
	for _, set := range b.Set {
		if err := CheckRow(kv.Row{Key: set.Key, Value: set.Value}); err != nil {
			return err
		}
	}
	return r.commit(ctx, b)
}

// own records the version of the record that the first commit wrote.
func (r *Receiver) own(ctx context.Context) error {
	if r.ours {
		return nil
	}
	row, err := r.store.rows.Get(ctx, keyspace.Conversation(r.have.ID))
	if err != nil {
		return err
	}
	r.have.version, r.ours = row.Version, true
	return nil
}
