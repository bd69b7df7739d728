package conversation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Store keeps conversations in a blob store and a row store. It is safe for
// concurrent use.
type Store struct {
	blobs blob.Store
	rows  kv.Store
	opts  Options

	filters atomic.Pointer[filters] // as last read for a commit; nil until then
}

// Options configure a Store; nil gives the defaults.
type Options struct {
	// Now is the clock; time.Now by default. It is only for display.
	Now func() time.Time
	// Parallel is how many blobs are read at once, 16 by default.
	Parallel int
}

// New returns the store of the conversations in the given blobs and rows.
func New(blobs blob.Store, rows kv.Store, opts *Options) *Store {
	s := &Store{blobs: blobs, rows: rows}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.Parallel <= 0 {
		s.opts.Parallel = 16
	}
	return s
}

// Info describes a conversation without its state. Create uses the first five fields;
// the others are results.
type Info struct {
	// ID names the conversation. If it is empty, Create generates one.
	ID    string
	Title string
	// Workspace is a path or a URI. A conversation keeps its WorkspaceName.
	Workspace string
	Agent     string
	Labels    map[string]string

	Created time.Time
	// Updated is the time of the last save.
	Updated time.Time
	// Turns is the number of turns.
	Turns uint64
	// Save is the number of the current save, 0 if there is none.
	Save uint64
	// Root is the current root, zero if there is none.
	Root blob.ID
	// Turn is what is known about the last turn, nil if nothing is.
	Turn *TurnDetails
	// ForkedFrom and ForkedFromSave are the origin of a fork.
	ForkedFrom     string
	ForkedFromSave uint64
}

// Formats of our rows that this release reads and writes.
const recordFormat = 1

// checkID rejects text that cannot be an id.
func checkID(what, id string) error {
	if err := keyspace.CheckID(id); err != nil {
		return invalid("%s id %v", what, err)
	}
	return nil
}

// Create makes a conversation and opens it for writing. It fails with ErrExists if
// the id is taken.
func (s *Store) Create(ctx context.Context, info Info) (*Conversation, error) {
	rec, err := s.newRecord(info)
	if err != nil {
		return nil, err
	}
	value, err := marshal(rec)
	if err != nil {
		return nil, err
	}
	err = s.commitNew(ctx, rec, &kv.Batch{
		Expect: []kv.Expect{{Key: keyspace.Conversation(rec.Id)}, {Key: keyspace.Head(rec.Id)}},
		Set: []kv.Set{
			{Key: keyspace.Conversation(rec.Id), Value: value},
			{Key: keyspace.ByTime(rec.CreatedAtMs, rec.Id)},
			changed(rec.Id),
		},
	}, s.rows.Commit)
	if errors.Is(err, kv.ErrConflict) {
		return nil, fmt.Errorf("create conversation %s: %w", rec.Id, ErrExists)
	}
	if err != nil {
		return nil, fmt.Errorf("create conversation %s: %w", rec.Id, err)
	}
	return s.openAs(ctx, rec)
}

func (s *Store) newRecord(info Info) (*stetv1.ConversationRecord, error) {
	if info.ID == "" {
		info.ID = ulid.Make().String()
	}
	if err := checkID("conversation", info.ID); err != nil {
		return nil, err
	}
	return &stetv1.ConversationRecord{
		Format:      recordFormat,
		Id:          info.ID,
		Title:       info.Title,
		Workspace:   WorkspaceName(info.Workspace),
		Agent:       info.Agent,
		Labels:      maps.Clone(info.Labels),
		CreatedAtMs: s.nowMS(),
		Epoch:       1,
		Writer:      newWriter(),
	}, nil
}

// now has the precision that rows keep.
func (s *Store) now() time.Time { return time.UnixMilli(s.nowMS()) }

// nowMS is never negative, because keys could not order negative times.
func (s *Store) nowMS() int64 { return max(0, s.opts.Now().UnixMilli()) }

func newWriter() []byte {
	w := make([]byte, 16)
	rand.Read(w) // never fails
	return w
}

// record reads the record of a conversation.
func (s *Store) record(ctx context.Context, id string) (*stetv1.ConversationRecord, uint64, error) {
	if err := checkID("conversation", id); err != nil {
		return nil, 0, err
	}
	row, err := s.rows.Get(ctx, keyspace.Conversation(id))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, 0, fmt.Errorf("conversation %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read conversation %s: %w", id, err)
	}
	rec, err := decodeConversation(row)
	return rec, row.Version, err
}

// Get describes a conversation.
func (s *Store) Get(ctx context.Context, id string) (Info, error) {
	rec, _, err := s.record(ctx, id)
	if err != nil {
		return Info{}, err
	}
	last, err := s.lastSave(ctx, id)
	if err != nil {
		return Info{}, err
	}
	return infoOf(rec, last), nil
}

func infoOf(rec *stetv1.ConversationRecord, last Save) Info {
	info := Info{
		ID: rec.Id, Title: rec.Title, Workspace: rec.Workspace, Agent: rec.Agent, Labels: maps.Clone(rec.Labels),
		Created: time.UnixMilli(rec.CreatedAtMs), Updated: time.UnixMilli(rec.CreatedAtMs),
		ForkedFrom: rec.ForkedFrom, ForkedFromSave: rec.ForkedFromSave,
	}
	if last.Seq > 0 {
		info.Updated, info.Turns, info.Save, info.Root, info.Turn = last.Time, last.Turns, last.Seq, last.Root, last.Turn
	}
	return info
}

// SetTitle changes the title of a conversation. It does not affect a writer.
func (s *Store) SetTitle(ctx context.Context, id, title string) error {
	return s.changeRecord(ctx, id, func(rec *stetv1.ConversationRecord) { rec.Title = title })
}

// SetLabel sets a label of a conversation, or removes it with an empty value. It does
// not affect a writer.
func (s *Store) SetLabel(ctx context.Context, id, label, value string) error {
	return s.changeRecord(ctx, id, func(rec *stetv1.ConversationRecord) {
		if value == "" {
			delete(rec.Labels, label)
			return
		}
		if rec.Labels == nil {
			rec.Labels = make(map[string]string)
		}
		rec.Labels[label] = value
	})
}

// attempts is how often a failed compare-and-swap is retried.
const attempts = 20

func (s *Store) changeRecord(ctx context.Context, id string, change func(*stetv1.ConversationRecord)) error {
	for range attempts {
		rec, version, err := s.record(ctx, id)
		if err != nil {
			return err
		}
		change(rec)
		value, err := marshal(rec)
		if err != nil {
			return err
		}
		key := keyspace.Conversation(id)
		err = s.rows.Commit(ctx, &kv.Batch{Expect: []kv.Expect{{Key: key, Version: version}}, Set: []kv.Set{{Key: key, Value: value}, changed(id)}})
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("change conversation %s: %w", id, err)
		}
		return nil
	}
	return fmt.Errorf("change conversation %s: %w", id, kv.ErrConflict)
}
