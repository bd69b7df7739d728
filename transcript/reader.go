package transcript

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Reader makes transcripts. It is safe for concurrent use.
type Reader struct {
	conversations *conversation.Store
	blobs         blob.Store
}

// New returns a Reader of the conversations in a store. blobs must be the store's
// own.
func New(conversations *conversation.Store, blobs blob.Store) *Reader {
	return &Reader{conversations: conversations, blobs: blobs}
}

// Transcript is a state that can be read message by message. It does not change when
// others save.
type Transcript struct {
	// Info describes the conversation; for a subagent only its ID is set, and for a root
	// it is empty.
	Info conversation.Info
	// Root is zero for a state that has none.
	Root blob.ID

	reader  *Reader
	head    *conversation.State // without the turns if they are read in pages
	damage  error               // damage outside of the turns
	paged   bool
	ids     []blob.ID // of all turns
	times   []uint64  // in milliseconds, of the latest turns
	missing int       // leading ids whose turns are not loaded
}

// Conversation returns the transcript of a conversation as it is now.
func (r *Reader) Conversation(ctx context.Context, id string) (*Transcript, error) {
	info, err := r.conversations.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if info.Root.IsZero() {
		t := r.State(&conversation.State{})
		t.Info = info
		return t, nil
	}
	t, err := r.At(ctx, info.Root)
	if err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", id, err)
	}
	t.Info = info
	return t, nil
}

// At returns the transcript of a root, such as that of an earlier save. Messages
// reports lost or damaged parts below the root.
func (r *Reader) At(ctx context.Context, root blob.ID) (*Transcript, error) {
	opts := &conversation.HydrateOptions{TurnFrom: math.MaxInt, OnlyTurns: true}
	head, err := r.conversations.HydrateRoot(ctx, root, opts)
	var damage error
	if errors.Is(err, conversation.ErrDataLoss) {
		damage, opts.Lenient = err, true
		head, err = r.conversations.HydrateRoot(ctx, root, opts)
	}
	if err != nil {
		return nil, err
	}
	t := &Transcript{Root: root, reader: r, head: head, damage: damage, paged: true}
	for _, turn := range head.OldTurns {
		t.ids = append(t.ids, turn.Old.ID())
	}
	return t, t.readIDs(ctx)
}

// readIDs reads the ids of the turns. Hydrating the head has checked the root
// against all limits.
func (t *Transcript) readIDs(ctx context.Context) error {
	raw, err := t.reader.blobs.Get(ctx, t.Root)
	if err != nil {
		return err
	}
	s := new(agentv1.ConversationStateStructure)
	if err := proto.Unmarshal(raw, s); err != nil {
		return fmt.Errorf("read root %s: %w: %w", t.Root.Short(), wirelimit.ErrMalformed, err)
	}
	for _, timing := range s.TurnTimings {
		t.times = append(t.times, timing.GetTimestampMs())
	}
	for _, id := range s.Turns {
		parsed, _ := blob.IDFromBytes(id) // reading the turn reports the error
		t.ids = append(t.ids, parsed)
	}
	return nil
}

// State returns the transcript of a state in memory. Its turns keep their numbers if
// earlier ones are omitted.
func (r *Reader) State(s *conversation.State) *Transcript {
	t := &Transcript{reader: r, head: s, missing: s.FirstTurn}
	for _, turn := range s.OldTurns {
		t.ids = append(t.ids, turn.Old.ID())
	}
	t.ids = append(t.ids, make([]blob.ID, s.FirstTurn)...)
	t.times = make([]uint64, s.FirstTurn)
	for _, timing := range s.Rest.GetTurnTimings() {
		t.times = append(t.times, timing.GetTimestampMs())
	}
	for _, turn := range s.Turns {
		t.ids = append(t.ids, turn.Structure.ID())
	}
	return t
}

// Turns returns the number of turns.
func (t *Transcript) Turns() int { return len(t.ids) }

// TurnIDs returns the ids of the turns' blobs. Turns with equal ids are equal, except
// for their times. The id is zero for a turn that is omitted or has none.
func (t *Transcript) TurnIDs() []blob.ID { return slices.Clone(t.ids) }

// TurnTime returns when a turn, counted from 0, began; zero if unknown.
func (t *Transcript) TurnTime(turn int) time.Time {
	if i := turn - len(t.head.OldTurns); i >= 0 && i < len(t.times) {
		return milliseconds(t.times[i])
	}
	return time.Time{}
}

// Subagents returns the ids of the subagents whose states exist, sorted.
func (t *Transcript) Subagents() []string {
	ids := slices.AppendSeq(slices.Collect(maps.Keys(t.head.Subagents)), maps.Keys(t.head.SubagentRefs))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Subagent returns the transcript of a subagent, or conversation.ErrNotFound.
func (t *Transcript) Subagent(ctx context.Context, id string) (*Transcript, error) {
	var sub *Transcript
	if root, ok := t.head.SubagentRefs[id]; ok {
		if t.reader.conversations == nil {
			return nil, fmt.Errorf("subagent %s: %w: no store", id, conversation.ErrNotFound)
		}
		var err error
		if sub, err = t.reader.At(ctx, root); err != nil {
			return nil, fmt.Errorf("read subagent %s: %w", id, err)
		}
	} else if inline, ok := t.head.Subagents[id]; ok && inline.State != nil {
		sub = t.reader.State(inline.State)
	} else if ok {
		sub = t.reader.State(&conversation.State{})
	} else {
		return nil, fmt.Errorf("subagent %s: %w", id, conversation.ErrNotFound)
	}
	sub.Info.ID = id
	return sub, nil
}

// Digest returns a value that is equal for two transcripts only if Messages, with the
// same options, yields the same.
func (t *Transcript) Digest() (blob.ID, error) {
	if !t.Root.IsZero() {
		return t.Root, nil
	}
	s, err := t.head.Structure()
	if errors.Is(err, conversation.ErrPartial) {
		return blob.ID{}, err
	}
	if err != nil {
		return blob.ID{}, fmt.Errorf("digest of a state: %w", err)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		return blob.ID{}, fmt.Errorf("digest of a state: %w", err)
	}
	return blob.Sum(raw), nil
}
