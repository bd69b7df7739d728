package conversation

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// FromInline converts an inline state, and returns what the stored form cannot hold:
// only unknown fields, because the two forms number theirs differently.
func FromInline(in *agentv1.ConversationState) (*State, []string, error) {
	w := &inliner{}
	w.unknown("state", in)
	for i, t := range in.Turns {
		w.unknown(fmt.Sprintf("turns[%d]", i), t)
		if shell := t.GetShellConversationTurn(); shell != nil {
			w.unknown(fmt.Sprintf("turns[%d]", i), shell)
		}
	}
	s, err := fromInline(in)
	return s, slices.Compact(w.lost), err
}

func fromInline(in *agentv1.ConversationState) (*State, error) {
	s := &State{Rest: &agentv1.ConversationStateStructure{
		PendingToolCalls: slices.Clone(in.PendingToolCalls),
		TokenDetails:     proto.CloneOf(in.TokenDetails),
	}}
	for _, m := range in.RootPromptMessagesJson {
		s.Prompt = append(s.Prompt, NewContent([]byte(m)))
	}
	for _, t := range in.Turns {
		turn, err := turnFromInline(t)
		if err != nil {
			return nil, err
		}
		s.Turns = append(s.Turns, turn)
	}
	s.TotalTurns = len(s.Turns)
	var err error
	if s.Todos, err = items(in.Todos); err != nil {
		return nil, err
	}
	if s.Archives, err = items(in.SummaryArchives); err != nil {
		return nil, err
	}
	if s.Summary, err = optional(in.Summary, in.Summary != nil); err != nil {
		return nil, err
	}
	if s.Plan, err = optional(in.Plan, in.Plan != nil); err != nil {
		return nil, err
	}
	if s.Archive, err = optional(in.SummaryArchive, in.SummaryArchive != nil); err != nil {
		return nil, err
	}
	for path, f := range in.FileStates {
		item, err := NewItem(f)
		if err != nil {
			return nil, err
		}
		put(&s.FileStates, path, item)
	}
	return s, nil
}

func turnFromInline(in *agentv1.ConversationTurn) (Turn, error) {
	var t Turn
	var err error
	switch {
	case in.GetAgentConversationTurn() != nil:
		t, err = agentTurn(in.GetAgentConversationTurn())
	case in.GetShellConversationTurn() != nil:
		shell := in.GetShellConversationTurn()
		t, err = NewShellTurn(shell.ShellCommand, shell.ShellOutput)
	default:
		t.Structure, err = NewItem(&agentv1.ConversationTurnStructure{})
	}
	return t, err
}

func items[M proto.Message](in []M) ([]Item[M], error) {
	var out []Item[M]
	for _, m := range in {
		item, err := NewItem(m)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func optional[M proto.Message](m M, present bool) (Item[M], error) {
	if !present {
		return Item[M]{}, nil
	}
	return NewItem(m)
}

// Inline returns the state with everything inside, and the fields that this form
// cannot hold. Files of the newer form are converted to the older one if they are
// text; a partially hydrated state gives only that part.
func (s *State) Inline() (*agentv1.ConversationState, []string, error) {
	out := &agentv1.ConversationState{}
	w := &inliner{out: out}
	for _, c := range s.Prompt {
		if !c.loaded {
			return nil, nil, fmt.Errorf("message %s: %w", c.id.Short(), ErrPartial)
		}
		if !utf8.Valid(c.data) {
			return nil, nil, invalid("message %s is not UTF-8", c.id.Short())
		}
		out.RootPromptMessagesJson = append(out.RootPromptMessagesJson, string(c.data))
	}
	for _, turns := range [][]Turn{s.OldTurns, s.Turns} {
		for i := range turns {
			w.turn(&turns[i], i)
		}
	}
	out.Todos = decodeAll(w, s.Todos)
	out.SummaryArchives = decodeAll(w, s.Archives)
	out.Summary = decodeOne(w, s.Summary)
	out.Plan = decodeOne(w, s.Plan)
	out.SummaryArchive = decodeOne(w, s.Archive)
	w.files(s)
	w.rest(s)
	if w.err != nil {
		return nil, nil, w.err
	}
	slices.Sort(w.lost)
	return out, slices.Compact(w.lost), nil
}

type inliner struct {
	out  *agentv1.ConversationState
	lost []string
	err  error
}

func (w *inliner) lose(format string, args ...any) {
	w.lost = append(w.lost, fmt.Sprintf(format, args...))
}

func decodeOne[M proto.Message](w *inliner, item Item[M]) M {
	var none M
	if item.IsNone() || w.err != nil {
		return none
	}
	m, err := item.Decode()
	if err != nil {
		w.err = err
	}
	return m
}

func decodeAll[M proto.Message](w *inliner, in []Item[M]) []M {
	var out []M
	for _, item := range in {
		out = append(out, decodeOne(w, item))
	}
	return out
}

func (w *inliner) turn(t *Turn, i int) {
	agent := decodeOne(w, t.Old)
	if s := decodeOne(w, t.Structure); s != nil {
		agent = s.GetAgentConversationTurn()
		w.unknown(fmt.Sprintf("turns[%d]", i), s)
		if shell := s.GetShellConversationTurn(); shell != nil {
			w.unknown(fmt.Sprintf("turns[%d]", i), shell)
			w.out.Turns = append(w.out.Turns, &agentv1.ConversationTurn{Turn: &agentv1.ConversationTurn_ShellConversationTurn{
				ShellConversationTurn: &agentv1.ShellConversationTurn{
					ShellCommand: decodeOne(w, t.ShellCommand), ShellOutput: decodeOne(w, t.ShellOutput),
				},
			}})
			return
		}
	}
	if agent == nil {
		w.out.Turns = append(w.out.Turns, &agentv1.ConversationTurn{})
		return
	}
	if agent.EncryptedModel != nil {
		w.lose("turns[%d].encrypted_model", i)
	}
	if agent.DynamicToolCount != nil {
		w.lose("turns[%d].dynamic_tool_count", i)
	}
	in := &agentv1.AgentConversationTurn{UserMessage: decodeOne(w, t.UserMessage), Steps: decodeAll(w, t.Steps), RequestId: agent.RequestId}
	in.ProtoReflect().SetUnknown(slices.Clone(agent.ProtoReflect().GetUnknown()))
	w.out.Turns = append(w.out.Turns, &agentv1.ConversationTurn{Turn: &agentv1.ConversationTurn_AgentConversationTurn{AgentConversationTurn: in}})
}

func (w *inliner) unknown(where string, m proto.Message) {
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		w.lose("%s: fields unknown to this release", where)
	}
}

func (w *inliner) files(s *State) {
	for path, item := range s.FileStates {
		put(&w.out.FileStates, path, decodeOne(w, item))
	}
	for _, path := range slices.Sorted(maps.Keys(s.Files)) {
		f := s.Files[path]
		_, both := s.FileStates[path]
		switch {
		case !f.Content.IsNone() && !f.Content.loaded || !f.Initial.IsNone() && !f.Initial.loaded:
			w.err = fmt.Errorf("file %q: %w", path, ErrPartial)
		case both:
			w.lose("file_states_v2[%q]: file_states has it too", path)
		case !utf8.Valid(f.Content.data) || !utf8.Valid(f.Initial.data):
			w.lose("file_states_v2[%q]: not text", path)
		default:
			if len(f.unknown) > 0 {
				w.lose("file_states_v2[%q]: fields of a newer release", path)
			}
			put(&w.out.FileStates, path, &agentv1.FileState{Content: text(f.Content), InitialContent: text(f.Initial)})
		}
	}
}

func text(c Content) *string {
	if c.IsNone() {
		return nil
	}
	return proto.String(string(c.data))
}

// rest copies the two fields that both forms have and reports the others.
func (w *inliner) rest(s *State) {
	if len(s.Subagents) > 0 {
		w.lose("subagent_states")
	}
	if len(s.SubagentRefs) > 0 {
		w.lose("subagent_state_refs")
	}
	if len(s.OldTurns) > 0 {
		w.lose("turns_old: converted to turns")
	}
	if s.Rest == nil {
		return
	}
	w.out.PendingToolCalls = slices.Clone(s.Rest.PendingToolCalls)
	w.out.TokenDetails = proto.CloneOf(s.Rest.TokenDetails)
	rest := proto.CloneOf(s.Rest)
	clearParts(rest)
	rest.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if n := fd.Name(); n != "pending_tool_calls" && n != "token_details" {
			w.lose("%s", n)
		}
		return true
	})
	w.unknown("state", rest)
}
