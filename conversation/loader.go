package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// loader resolves structures.
type loader struct {
	store *Store
	opts  HydrateOptions
	first int         // the number of the first turn
	lost  atomic.Bool // something unreadable was omitted
	// beside are states of subagents already read, by root.
	beside map[blob.ID]*State
}

// want is a content to be loaded.
type want struct {
	field string
	index int // in a list; -1 outside of one
	at    *Content
}

func (w want) String() string {
	if w.index < 0 {
		return w.field
	}
	return fmt.Sprintf("%s[%d]", w.field, w.index)
}

// state resolves a structure and, inside it, the states of subagents. It keeps
// in.
func (l *loader) state(ctx context.Context, in *agentv1.ConversationStateStructure, depth int) (*State, error) {
	if depth > graph.MaxNested {
		return nil, &HydrationError{Source: "subagent_states", Err: errors.Join(ErrInvalid, ErrTooDeep)}
	}
	s := &State{TotalTurns: len(in.Turns)}
	var wants []want
	b := binder{wants: &wants, lenient: l.opts.Lenient}
	s.Prompt = bindAll(&b, "root_prompt_messages_json", in.RootPromptMessagesJson, func(c *Content) *Content { return c })
	s.OldTurns = bindAll(&b, "turns_old", in.TurnsOld, func(t *Turn) *Content { return &t.Old.Content })
	s.Turns = bindAll(&b, "turns", in.Turns, func(t *Turn) *Content { return &t.Structure.Content })
	s.Todos = bindAll(&b, "todos", in.Todos, contentOf[*agentv1.TodoItem])
	b.bind("summary", in.Summary, &s.Summary.Content)
	b.bind("plan", in.Plan, &s.Plan.Content)
	b.bind("summary_archive", in.SummaryArchive, &s.Archive.Content)
	s.Archives = bindAll(&b, "summary_archives", in.SummaryArchives, contentOf[*agentv1.ConversationSummaryArchive])
	files, err := l.files(&b, s, in)
	if err != nil {
		return nil, err
	}
	if b.err != nil {
		return nil, b.err
	}
	if err := l.load(ctx, wants); err != nil {
		return nil, err
	}
	files()
	if err := l.turns(ctx, s); err != nil {
		return nil, err
	}
	if err := l.subagents(ctx, s, in, depth); err != nil {
		return nil, err
	}
	clearParts(in)
	s.Rest = in
	s.partial = s.partial || b.lost || l.lost.Load()
	return s, nil
}

// files requests the files; the returned function puts them into the state once
// loaded, because map values have no address.
func (l *loader) files(b *binder, s *State, in *agentv1.ConversationStateStructure) (func(), error) {
	old := make(map[string]*Item[*agentv1.FileState], len(in.FileStates))
	for path, id := range in.FileStates {
		old[path] = new(Item[*agentv1.FileState])
		b.bind(fmt.Sprintf("file_states[%q]", path), id, &old[path].Content)
	}
	files := make(map[string]*File, len(in.FileStatesV2))
	for path, f := range in.FileStatesV2 {
		files[path] = &File{unknown: f.ProtoReflect().GetUnknown()}
		b.bind(fmt.Sprintf("file_states_v2[%q].content", path), f.GetContent(), &files[path].Content)
		b.bind(fmt.Sprintf("file_states_v2[%q].initial_content", path), f.GetInitialContent(), &files[path].Initial)
	}
	for id, root := range in.SubagentStateRefs {
		parsed, err := blob.IDFromBytes(root)
		if err != nil && b.lenient {
			b.lost = true
			continue
		}
		if err != nil {
			return nil, &HydrationError{Source: fmt.Sprintf("subagent_state_refs[%q]", id), Err: err}
		}
		put(&s.SubagentRefs, id, parsed)
	}
	return func() {
		for path, f := range old {
			put(&s.FileStates, path, *f)
		}
		for path, f := range files {
			put(&s.Files, path, *f)
		}
	}, nil
}

func (l *loader) subagents(ctx context.Context, s *State, in *agentv1.ConversationStateStructure, depth int) error {
	inner := &loader{store: l.store, opts: l.opts, beside: l.beside} // with all turns
	for id, p := range in.SubagentStates {
		sub := Subagent{Rest: p}
		if p.ConversationState != nil {
			var err error
			if sub.State, err = inner.state(ctx, p.ConversationState, depth+1); err != nil {
				return err
			}
			s.partial = s.partial || sub.State.partial
		}
		p.ConversationState = nil
		put(&s.Subagents, id, sub)
	}
	if !l.opts.Subagents {
		return nil
	}
	for id, root := range s.SubagentRefs {
		sub, err := inner.named(ctx, id, root)
		if err != nil {
			return err
		}
		s.partial = s.partial || sub.partial
		put(&s.SubagentStates, id, sub)
	}
	return nil
}

// named reads the state of a subagent by its root. The depth was checked before. Each
// state is read once; otherwise a few states that name the next one twice would
// become billions.
func (l *loader) named(ctx context.Context, id string, root blob.ID) (*State, error) {
	if s := l.beside[root]; s != nil {
		return s, nil
	}
	source := fmt.Sprintf("subagent_state_refs[%q]", id)
	raw, err := l.store.blobs.Get(ctx, root)
	if err != nil {
		return nil, l.store.lost("", source, err)
	}
	o := l.opts
	o.TurnFrom, o.TurnTo = 0, 0
	cut, err := cutRoot(raw, o)
	structure := new(agentv1.ConversationStateStructure)
	if err == nil {
		err = wirelimit.Unmarshal(cut.raw, structure, rootLimits)
	}
	if err != nil {
		return nil, l.store.lost("", source, err)
	}
	s, err := l.state(ctx, structure, 0)
	if err != nil {
		return nil, err
	}
	s.partial = s.partial || cut.partial
	l.beside[root] = s
	return s, nil
}

// turns resolves the references of the turns.
func (l *loader) turns(ctx context.Context, s *State) error {
	var wants []want
	b := binder{wants: &wants, lenient: l.opts.Lenient}
	defer func() {
		if b.lost {
			l.lost.Store(true)
		}
	}()
	for i := range s.OldTurns {
		t := &s.OldTurns[i]
		m := new(agentv1.AgentConversationTurnStructure)
		if err := l.decode(&t.Old.Content, m, "turns_old", i); err != nil {
			return err
		}
		b.agentTurn(fmt.Sprintf("turns_old[%d]", i), t, m)
	}
	for i := range s.Turns {
		t := &s.Turns[i]
		m := new(agentv1.ConversationTurnStructure)
		if err := l.decode(&t.Structure.Content, m, "turns", l.first+i); err != nil {
			return err
		}
		field := fmt.Sprintf("turns[%d]", l.first+i)
		b.agentTurn(field, t, m.GetAgentConversationTurn())
		b.bind(field+".shell_command", m.GetShellConversationTurn().GetShellCommand(), &t.ShellCommand.Content)
		b.bind(field+".shell_output", m.GetShellConversationTurn().GetShellOutput(), &t.ShellOutput.Content)
	}
	if b.err != nil {
		return b.err
	}
	if err := l.load(ctx, wants); err != nil {
		return err
	}
	if l.opts.WithoutHeavyToolOutput {
		return lighten(s)
	}
	return nil
}

// decode parses a turn. An unparsable one is treated like one without bytes.
func (l *loader) decode(c *Content, m proto.Message, field string, i int) error {
	if err := wirelimit.Unmarshal(c.data, m, partLimits); err != nil {
		if l.opts.Lenient {
			proto.Reset(m)
			*c = Content{id: c.id}
			l.lost.Store(true)
			return nil
		}
		return &HydrationError{Source: fmt.Sprintf("%s[%d]", field, i), Err: err}
	}
	return nil
}

// load reads contents in parallel.
func (l *loader) load(ctx context.Context, wants []want) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(l.store.opts.Parallel)
	for _, w := range wants {
		g.Go(func() error {
			data, err := l.store.blobs.Get(ctx, w.at.id)
			if err != nil {
				err = l.store.lost("", w.String(), err)
				if l.opts.Lenient && errors.Is(err, ErrDataLoss) {
					l.lost.Store(true)
					return nil
				}
				return err
			}
			w.at.data, w.at.loaded = data, true
			return nil
		})
	}
	return g.Wait()
}

// binder reads ids into contents and records that their bytes are wanted.
type binder struct {
	wants   *[]want
	err     error
	lenient bool
	lost    bool // an error, in lenient mode
}

// fail records the first invalid id.
func (b *binder) fail(source string, err error) {
	if b.lenient {
		b.lost = true
	} else if b.err == nil {
		b.err = &HydrationError{Source: source, Err: err}
	}
}

func (b *binder) bind(field string, id []byte, at *Content) {
	b.bindAt(want{field: field, index: -1, at: at}, id)
}

func (b *binder) bindAt(w want, id []byte) {
	content, err := contentRef(id)
	if err != nil {
		b.fail(w.String(), err)
	}
	*w.at = content
	if !content.IsNone() {
		*b.wants = append(*b.wants, w)
	}
}

func (b *binder) agentTurn(field string, t *Turn, m *agentv1.AgentConversationTurnStructure) {
	b.bind(field+".user_message", m.GetUserMessage(), &t.UserMessage.Content)
	t.Steps = bindAll(b, field+".steps", m.GetSteps(), contentOf[*agentv1.ConversationStep])
}

func contentOf[M proto.Message](i *Item[M]) *Content { return &i.Content }

// bindAll binds a list. An entry without an id is an error: a list has no
// "none".
func bindAll[T any](b *binder, field string, list [][]byte, content func(*T) *Content) []T {
	if len(list) == 0 {
		return nil
	}
	out := make([]T, len(list))
	for i, id := range list {
		if len(id) == 0 {
			b.fail(fmt.Sprintf("%s[%d]", field, i), blob.ErrInvalidID)
		}
		b.bindAt(want{field: field, index: i, at: content(&out[i])}, id)
	}
	return out
}
