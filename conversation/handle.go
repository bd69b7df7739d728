package conversation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Conversation is a handle on one conversation. Its setters change a draft in memory;
// Save makes the draft the current state. It is safe for concurrent use, but callers
// that build one state together must coordinate.
type Conversation struct {
	store    *Store
	id       string
	writable bool

	mu      sync.Mutex                 // guards what follows
	record  *stetv1.ConversationRecord // as last read
	version uint64                     // of the record's row; it changes with the writer, not with saves
	head    Save                       // the current save; Seq 0 if there is none
	listed  int64                      // time of the row that lists the conversation
	stale   bool                       // another writer took over
	draft   *draft                     // nil until needed
	turn    *openTurn                  // the last turn, nil until needed
	staged  map[blob.ID]blob.Blob      // blobs of the draft that are not stored yet
	exact   blob.ID                    // a stored root equal to the draft
	roots   map[blob.ID]uint64         // saves that this handle made or started from
	known   *graph.Set                 // blobs of others named by earlier saves of this handle
	knownAt uint64                     // version of the collections row at that time
	nesting graph.Nesting              // of subagents, measured so far
	doubt   *attempt                   // a commit that may or may not have happened
}

// openTurn is the last turn, which may still grow. A step is appended to its bytes as
// another piece of the same field, which parsers merge, so that a turn of a thousand
// steps is not written a thousand times.
type openTurn struct {
	builder *blob.Builder
	blob    blob.Blob // the latest form
	dirty   bool      // steps were added since
}

// Open opens a conversation for writing. It takes a new epoch: from now on, saves of
// earlier handles fail with ErrStale.
func (s *Store) Open(ctx context.Context, id string) (*Conversation, error) {
	for range attempts {
		rec, version, err := s.record(ctx, id)
		if err != nil {
			return nil, err
		}
		if rec.Epoch >= MaxSeq {
			return nil, invalid("conversation %s cannot be opened for writing: its epochs are exhausted", id)
		}
		rec.Epoch++
		rec.Writer = newWriter()
		value, err := marshal(rec)
		if err != nil {
			return nil, err
		}
		key := keyspace.Conversation(id)
		err = s.rows.Commit(ctx, &kv.Batch{Expect: []kv.Expect{{Key: key, Version: version}}, Set: []kv.Set{{Key: key, Value: value}}})
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open conversation %s: %w", id, err)
		}
		return s.openAs(ctx, rec)
	}
	return nil, fmt.Errorf("open conversation %s: %w", id, kv.ErrConflict)
}

// openAs returns a handle for the writer in a record.
func (s *Store) openAs(ctx context.Context, rec *stetv1.ConversationRecord) (*Conversation, error) {
	c := &Conversation{store: s, id: rec.Id, writable: true, record: rec, known: new(graph.Set)}
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	return c, c.loadHead(ctx)
}

// OpenReadOnly returns a handle that cannot save and does not affect writers.
func (s *Store) OpenReadOnly(ctx context.Context, id string) (*Conversation, error) {
	rec, version, err := s.record(ctx, id)
	if err != nil {
		return nil, err
	}
	c := &Conversation{store: s, id: id, record: rec, version: version}
	return c, c.loadHead(ctx)
}

// refresh reads the record again and checks that this handle is still the writer.
func (c *Conversation) refresh(ctx context.Context) error {
	rec, version, err := c.store.record(ctx, c.id)
	if err != nil {
		return err
	}
	if rec.Epoch != c.record.Epoch || !bytes.Equal(rec.Writer, c.record.Writer) {
		c.stale = true
		return c.staleError(rec.Epoch)
	}
	c.record, c.version = rec, version
	return nil
}

func (c *Conversation) staleError(now uint64) error {
	return fmt.Errorf("%w: conversation %s was opened again (epoch %d, this handle has %d)", ErrStale, c.id, now, c.record.Epoch)
}

func (c *Conversation) loadHead(ctx context.Context) error {
	head, err := c.store.lastSave(ctx, c.id)
	if err != nil {
		return err
	}
	c.setHead(head)
	return nil
}

func (c *Conversation) setHead(head Save) {
	c.head, c.listed = head, c.record.CreatedAtMs
	if head.Seq > 0 {
		c.listed = head.Time.UnixMilli()
		if c.roots == nil {
			c.roots = make(map[blob.ID]uint64)
		}
		c.roots[head.Root] = head.Seq
	}
}

// ID returns the conversation's id.
func (c *Conversation) ID() string { return c.id }

// Epoch returns the number that this handle took when it was opened.
func (c *Conversation) Epoch() uint64 { return c.record.Epoch }

// Head returns the current save known to this handle; its Seq is 0 if there is none.
func (c *Conversation) Head() Save {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head
}

// Info describes the conversation as known to this handle.
func (c *Conversation) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return infoOf(c.record, c.head)
}

// Turns returns the number of turns in the draft.
func (c *Conversation) Turns(ctx context.Context) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ensure(ctx); err != nil {
		return 0, err
	}
	return int(c.draft.turns()), nil
}

// Discard drops the changes since the last save.
func (c *Conversation) Discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discardLocked()
}

func (c *Conversation) discardLocked() {
	c.draft, c.turn, c.staged, c.exact = nil, nil, nil, blob.ID{}
}

// ensure loads the draft.
func (c *Conversation) ensure(ctx context.Context) error {
	if c.draft != nil {
		return nil
	}
	c.staged = make(map[blob.ID]blob.Blob)
	if c.head.Seq == 0 {
		c.draft = newDraft(blob.NewBuilder())
		return nil
	}
	raw, err := c.store.blobs.Get(ctx, c.head.Root)
	if err != nil {
		return c.store.lost(c.id, "pointer", err)
	}
	d, err := loadRoot(c.head.Root, raw)
	if err != nil {
		return c.store.lost(c.id, "pointer", err)
	}
	c.draft = d
	return nil
}

// edit loads the draft for a change.
func (c *Conversation) edit(ctx context.Context) error {
	if !c.writable {
		return fmt.Errorf("change conversation %s: %w", c.id, ErrReadOnly)
	}
	if err := c.ensure(ctx); err != nil {
		return err
	}
	c.exact = blob.ID{}
	return nil
}

// editWhole is edit for a change that replaces the whole state: a lost current state need
// not be read. The history keeps the save that names it.
func (c *Conversation) editWhole(ctx context.Context) error {
	err := c.edit(ctx)
	if !errors.Is(err, ErrDataLoss) {
		return err
	}
	c.draft, c.exact = newDraft(blob.NewBuilder()), blob.ID{}
	return nil
}

// loadRoot checks and parses a root.
func loadRoot(id blob.ID, raw []byte) (*draft, error) {
	if err := checkRoot(raw); err != nil {
		return nil, err
	}
	return loadDraft(id, raw)
}

// rootLimits allow the sum of our own limits on entries: a hundred thousand turns,
// prompts and files.
var rootLimits = &wirelimit.Limits{Bytes: 32 << 20}

var stateType = (*agentv1.ConversationStateStructure)(nil).ProtoReflect().Descriptor()

func checkRoot(raw []byte) error {
	if err := wirelimit.Check(raw, stateType, rootLimits); err != nil {
		return fmt.Errorf("%w: root: %w", ErrInvalid, err)
	}
	return nil
}

// parseRoot checks bytes from outside as strictly as a reader: only parsing finds
// invalid UTF-8.
func parseRoot(raw []byte) error {
	s := new(agentv1.ConversationStateStructure)
	if err := wirelimit.Unmarshal(raw, s, rootLimits); err != nil {
		return fmt.Errorf("%w: root: %w", ErrInvalid, err)
	}
	for _, path := range s.ReadPaths { // the limits cover map keys only
		if len(path) > maxPath {
			return invalid("root: a path of %d bytes", len(path))
		}
	}
	return nil
}

// lost wraps an error that means lost data in a HydrationError, and returns others,
// such as a done context, unchanged.
func (s *Store) lost(conversation, source string, err error) error {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrInvalidID) ||
		errors.Is(err, kv.ErrCorrupt) || errors.Is(err, ErrInvalid) || errors.Is(err, wirelimit.ErrMalformed) || errors.Is(err, ErrTooDeep) || errors.Is(err, wirelimit.ErrExceeded) {
		return &HydrationError{Conversation: conversation, Source: source, Err: err}
	}
	return fmt.Errorf("hydrate %s from %s: %w", conversation, source, err)
}
