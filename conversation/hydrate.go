package conversation

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// HydrateOptions select what is read; nil reads everything.
type HydrateOptions struct {
	// TurnFrom and TurnTo limit the turns, from 0, TurnTo excluded; a TurnTo of 0
	// means the end. Negative numbers count from the end: TurnFrom -10 gives the last
	// ten.
	TurnFrom, TurnTo int
	// OnlyTurns omits prompts, files and read paths.
	OnlyTurns bool
	// Subagents also reads the referenced states of subagents, recursively, with all
	// turns. Without it only their ids are present; HydrateRoot reads one on demand.
	Subagents bool
	// WithoutHeavyToolOutput replaces tool calls of more than 16 KiB by truncated
	// calls that name the whole step.
	WithoutHeavyToolOutput bool
	// Lenient leaves missing or damaged parts without their bytes, and omits what
	// only they name, instead of failing. The state is then partial. The root itself
	// must be intact.
	Lenient bool
}

// heavyStep is the size from which a tool call's step counts as heavy.
const heavyStep = 16 << 10

func (o *HydrateOptions) or() HydrateOptions {
	if o == nil {
		return HydrateOptions{}
	}
	return *o
}

// TurnSpan returns the turns that TurnFrom and TurnTo select out of n: negative values
// count from the end, and a TurnTo of 0 means all.
func TurnSpan(from, to, n int) (int, int) {
	if from < 0 {
		from += n
	}
	if to <= 0 {
		to += n
	}
	from = min(max(from, 0), n)
	return from, min(max(to, from), n)
}

// Hydrate returns the current state of a conversation. If it cannot be assembled, the
// error wraps ErrDataLoss and is a *HydrationError; if nothing was saved yet, the
// state is empty.
func (s *Store) Hydrate(ctx context.Context, id string, opts *HydrateOptions) (*State, error) {
	root, err := s.Head(ctx, id)
	if errors.Is(err, ErrNotFound) {
		if _, _, err := s.record(ctx, id); err != nil {
			return nil, err
		}
		return &State{Rest: &agentv1.ConversationStateStructure{}}, nil
	}
	if err != nil {
		return nil, s.lost(id, "pointer", err)
	}
	return s.hydrate(ctx, id, "pointer", root, opts)
}

// HydrateRoot returns the state of a root, such as that of a save.
func (s *Store) HydrateRoot(ctx context.Context, root blob.ID, opts *HydrateOptions) (*State, error) {
	return s.hydrate(ctx, "", "root", root, opts)
}

// HydrateTurns returns turns by the ids of their blobs, as a root lists them. It reads no
// root, since that names every turn of its conversation. first is the number of the first
// turn, from 0, for errors; of the options only Lenient and WithoutHeavyToolOutput matter.
func (s *Store) HydrateTurns(ctx context.Context, ids []blob.ID, first int, opts *HydrateOptions) ([]Turn, error) {
	structure := &agentv1.ConversationStateStructure{Turns: make([][]byte, len(ids))}
	for i := range ids {
		structure.Turns[i] = ids[i].Bytes()
	}
	l := &loader{store: s, opts: opts.or(), first: first}
	state, err := l.state(ctx, structure, 0)
	if err != nil {
		return nil, err
	}
	return state.Turns, nil
}

// Head returns the current root of a conversation, or ErrNotFound if it has
// none.
func (s *Store) Head(ctx context.Context, id string) (blob.ID, error) {
	if err := checkID("conversation", id); err != nil {
		return blob.ID{}, err
	}
	row, err := s.rows.Get(ctx, keyspace.Head(id))
	if errors.Is(err, kv.ErrNotFound) {
		return blob.ID{}, fmt.Errorf("root of conversation %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return blob.ID{}, err
	}
	return parseHead(row)
}

// loadState reads and checks the bytes of a root.
func (s *Store) loadState(ctx context.Context, id string, root blob.ID) ([]byte, error) {
	raw, err := s.blobs.Get(ctx, root)
	if err == nil {
		err = checkRoot(raw)
	}
	if err != nil {
		return nil, s.lost(id, "pointer", err)
	}
	return raw, nil
}

func (s *Store) hydrate(ctx context.Context, id, source string, root blob.ID, opts *HydrateOptions) (*State, error) {
	raw, err := s.blobs.Get(ctx, root)
	if err != nil {
		return nil, s.lost(id, source, err)
	}
	return s.hydrateRaw(ctx, id, source, raw, opts)
}

// hydrateRaw resolves a state from the bytes of its structure.
func (s *Store) hydrateRaw(ctx context.Context, id, source string, raw []byte, opts *HydrateOptions) (*State, error) {
	o := opts.or()
	cut, err := cutRoot(raw, o)
	if err == nil {
		err = checkRoot(cut.raw)
	}
	if err != nil {
		return nil, s.lost(id, source, err)
	}
	structure := new(agentv1.ConversationStateStructure)
	if err := proto.Unmarshal(cut.raw, structure); err != nil {
		return nil, s.lost(id, source, fmt.Errorf("%w: %w", wirelimit.ErrMalformed, err))
	}
	if o.Subagents {
		if err := new(graph.Nesting).Check(ctx, s.blobs.Get, graph.State, cut.raw); err != nil {
			return nil, s.lost(id, source, err)
		}
	}
	l := &loader{store: s, opts: o, first: cut.first, beside: make(map[blob.ID]*State)}
	state, err := l.state(ctx, structure, 0)
	if err != nil {
		var he *HydrationError
		if errors.As(err, &he) {
			he.Conversation = id
		}
		return nil, err
	}
	state.FirstTurn, state.TotalTurns = cut.first, cut.total
	state.partial = state.partial || cut.partial
	return state, nil
}

// cutting is the selected part of a root.
type cutting struct {
	raw          []byte
	first, total int // turns
	partial      bool
}

// cutRoot omits the turns, with their timings, and the lists and maps that are not
// selected. It works on the wire before parsing, so the end of a long conversation
// costs little more than that of a short one.
func cutRoot(raw []byte, o HydrateOptions) (cutting, error) {
	if len(raw) > rootLimits.Bytes {
		return cutting{}, invalid("a root of %d bytes", len(raw))
	}
	c := cutting{raw: raw}
	err := eachRecord(raw, func(num protowire.Number, _ []byte) {
		if num == fieldTurns {
			c.total++
		}
	})
	if err != nil {
		return cutting{}, err
	}
	from, to := TurnSpan(o.TurnFrom, o.TurnTo, c.total)
	if from == 0 && to == c.total && !o.OnlyTurns {
		return c, nil
	}
	c.raw, c.first, c.partial = nil, from, true
	turns, timings := 0, 0
	err = eachRecord(raw, func(num protowire.Number, rec []byte) {
		wanted := true
		switch num {
		case fieldTurns:
			wanted = turns >= from && turns < to
			turns++
		case fieldTimings:
			wanted = timings >= from && timings < to
			timings++
		case fieldPrompt, fieldReadPaths, fieldOldFiles, fieldFiles:
			wanted = !o.OnlyTurns
		}
		if wanted {
			c.raw = append(c.raw, rec...)
		}
	})
	return c, err
}

// Sources are the places of a conversation's state, in the order in which they are
// tried. The first non-empty one must hold the state.
type Sources struct {
	// Pointer is the hex id of a root.
	Pointer string
	// Text is a ConversationStateStructure as hex or, after a "~", as base64.
	Text string
	// Inline is a state with everything inside.
	Inline *agentv1.ConversationState
}

// HydrateFrom returns the state from the first non-empty source. If it cannot be
// read, that is data loss, and the error names the source; the next ones are older
// and would silently lose work.
func (s *Store) HydrateFrom(ctx context.Context, src Sources, opts *HydrateOptions) (*State, error) {
	switch {
	case strings.TrimSpace(src.Pointer) != "":
		root, err := blob.ParseID(src.Pointer)
		if err != nil {
			return nil, s.lost("", "pointer", err)
		}
		return s.hydrate(ctx, "", "pointer", root, opts)
	case strings.TrimSpace(src.Text) != "":
		raw, err := DecodeText(src.Text)
		if err != nil {
			return nil, s.lost("", "hex", err)
		}
		return s.hydrateRaw(ctx, "", "hex", raw, opts)
	case src.Inline != nil:
		state, _, err := FromInline(src.Inline)
		if err != nil {
			return nil, s.lost("", "inline", err)
		}
		return state, nil
	}
	return nil, fmt.Errorf("hydrate: no source holds a state: %w", ErrNotFound)
}

// DecodeText returns the bytes of a structure written as hex or, after a "~", as
// base64.
func DecodeText(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "~"); ok {
		raw, err := base64.StdEncoding.DecodeString(rest)
		if err != nil {
			return nil, invalid("state text is not base64: %v", err)
		}
		return raw, nil
	}
	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil, invalid("state text is not hex: %v", err)
	}
	return raw, nil
}

// EncodeText is the inverse of DecodeText, in the newer of the two forms.
func EncodeText(raw []byte) string { return "~" + base64.StdEncoding.EncodeToString(raw) }
