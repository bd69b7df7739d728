package conversation

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// State is a state with its parts loaded. Parts are immutable; change a state by
// replacing them.
type State struct {
	// Prompt is the messages of the model's prompt, as JSON.
	Prompt []Content
	// OldTurns are turns in the older form, which come before Turns.
	OldTurns []Turn
	Turns    []Turn
	Todos    []Item[*agentv1.TodoItem]
	Summary  Item[*agentv1.ConversationSummary]
	Plan     Item[*agentv1.ConversationPlan]
	// Archive is the older form of Archives.
	Archive  Item[*agentv1.ConversationSummaryArchive]
	Archives []Item[*agentv1.ConversationSummaryArchive]
	// FileStates is the older form of Files.
	FileStates map[string]Item[*agentv1.FileState]
	Files      map[string]File
	// Subagents are states of subagents inside this one.
	Subagents map[string]Subagent
	// SubagentRefs are the roots of subagents stored separately.
	SubagentRefs map[string]blob.ID
	// SubagentStates are the states of SubagentRefs, if HydrateOptions.Subagents was
	// set. A root that is named more than once is read once and shared. Saving a
	// state uses only SubagentRefs.
	SubagentStates map[string]*State
	// Rest holds all other fields: pending tool calls, token details, workspace URIs,
	// mode, timings, read paths, branch names, goals and unknown fields. Its fields
	// for the parts above are ignored.
	Rest *agentv1.ConversationStateStructure

	// FirstTurn is the number of omitted turns before Turns, and TotalTurns that of
	// all turns, if only a part was requested.
	FirstTurn, TotalTurns int

	partial bool // parts are omitted; saving it would lose them
}

// Subagent is the state of a subagent and its other data.
type Subagent struct {
	State *State
	// Rest is everything but the state.
	Rest *agentv1.SubagentPersistedState
}

// Partial reports whether turns or outputs are omitted.
func (s *State) Partial() bool { return s.partial }

// partFields are the fields of a structure that State keeps apart from Rest.
var partFields = []protowire.Number{1, 2, 3, 6, 7, 8, 11, 12, 13, 15, 16, 31}

// clearParts removes the fields that State keeps apart.
func clearParts(s *agentv1.ConversationStateStructure) {
	m := s.ProtoReflect()
	for _, num := range partFields {
		m.Clear(m.Descriptor().Fields().ByNumber(num))
	}
}

// Structure returns the state in its stored form, which names its parts by id.
// Blobs returns the parts.
func (s *State) Structure() (*agentv1.ConversationStateStructure, error) {
	if s.partial {
		return nil, ErrPartial
	}
	out := &agentv1.ConversationStateStructure{}
	if s.Rest != nil {
		out = proto.CloneOf(s.Rest)
		clearParts(out)
	}
	out.RootPromptMessagesJson = ids(s.Prompt, func(c Content) Content { return c })
	out.TurnsOld = ids(s.OldTurns, func(t Turn) Content { return t.Old.Content })
	out.Turns = ids(s.Turns, func(t Turn) Content { return t.Structure.Content })
	out.Todos = ids(s.Todos, itemContent)
	out.Summary = s.Summary.bytes32()
	out.Plan = s.Plan.bytes32()
	out.SummaryArchive = s.Archive.bytes32()
	out.SummaryArchives = ids(s.Archives, itemContent)
	for path, f := range s.FileStates {
		put(&out.FileStates, path, f.bytes32())
	}
	for path, f := range s.Files {
		put(&out.FileStatesV2, path, f.structure())
	}
	for id, root := range s.SubagentRefs {
		put(&out.SubagentStateRefs, id, root.Bytes())
	}
	return out, s.subagents(out)
}

func (s *State) subagents(out *agentv1.ConversationStateStructure) error {
	for id, sub := range s.Subagents {
		p := &agentv1.SubagentPersistedState{}
		if sub.Rest != nil {
			p = proto.CloneOf(sub.Rest)
		}
		p.ConversationState = nil
		if sub.State != nil {
			var err error
			if p.ConversationState, err = sub.State.Structure(); err != nil {
				return err
			}
		}
		put(&out.SubagentStates, id, p)
	}
	return nil
}

func itemContent[M proto.Message](i Item[M]) Content { return i.Content }

func ids[T any](parts []T, content func(T) Content) [][]byte {
	if len(parts) == 0 {
		return nil
	}
	out := make([][]byte, len(parts))
	for i, p := range parts {
		out[i] = content(p).bytes32()
	}
	return out
}

func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = value
}

// parts calls fn for the parts of a state and of its subagents.
func (s *State) parts(fn func(Content)) {
	for _, c := range s.Prompt {
		fn(c)
	}
	for _, turns := range [][]Turn{s.OldTurns, s.Turns} {
		for i := range turns {
			turns[i].parts(fn)
		}
	}
	for _, t := range s.Todos {
		fn(t.Content)
	}
	fn(s.Summary.Content)
	fn(s.Plan.Content)
	fn(s.Archive.Content)
	for _, a := range s.Archives {
		fn(a.Content)
	}
	for _, path := range slices.Sorted(maps.Keys(s.FileStates)) {
		fn(s.FileStates[path].Content)
	}
	for _, path := range slices.Sorted(maps.Keys(s.Files)) {
		fn(s.Files[path].Content)
		fn(s.Files[path].Initial)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Subagents)) {
		if sub := s.Subagents[id].State; sub != nil {
			sub.parts(fn)
		}
	}
}

// Blobs returns the parts with loaded bytes, each once.
func (s *State) Blobs() []blob.Blob {
	seen := make(map[blob.ID]bool)
	var out []blob.Blob
	s.parts(func(c Content) {
		if c.loaded && !seen[c.id] {
			seen[c.id] = true
			out = append(out, blob.Blob{ID: c.id, Data: c.data})
		}
	})
	return out
}

// SetState makes a state the draft. Parts without loaded bytes must be stored.
func (c *Conversation) SetState(ctx context.Context, s *State) error {
	structure, err := s.Structure()
	if err != nil {
		return err
	}
	raw, err := marshal(structure)
	if err != nil {
		return err
	}
	if err := checkRoot(raw); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.editWhole(ctx); err != nil {
		return err
	}
	s.parts(c.stage)
	return c.replace(raw)
}
