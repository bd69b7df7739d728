package blame

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/transcript"
)

// Words is what the conversation of an origin records about it.
type Words struct {
	// Agent is the program, such as "claude-code", and Title that of the conversation.
	Agent, Title string
	// Model is the model that answered last in the turn; "" if the agent's record does
	// not name it.
	Model string
	// Prompt is the prompt of the turn, or its command.
	Prompt string

	root      blob.ID // of a state that has the turn
	turn      uint64
	workspace string // the id of the directory that has the file
}

// Call is a call of a tool inside a turn.
type Call struct {
	// Number counts the calls of the turn, from 1.
	Number int
	// Tool is its name, such as "Edit"; Command is what a shell ran.
	Tool, Command string
	// ID is the id of the call; Message is the index of its message in the turn, from 0.
	ID      string
	Message int
}

// Teller reads the words of origins, each conversation and turn only once. It is for use by
// one goroutine.
type Teller struct {
	// WithoutModels leaves out Words.Model, which takes reading all saves of a
	// conversation.
	WithoutModels bool

	r       *Reader
	newest  map[blob.ID]*transcript.Transcript // states of conversations as they are now
	history *timeline.History
	infos   map[string]*conversation.Info
	turns   map[turnKey][]transcript.Message
	calls   map[turnKey]*turnCalls
	expects map[string][]int // turns by conversation that will be read soon
}

type turnKey struct {
	root blob.ID
	turn uint64
}

// Teller returns a reader of words.
func (r *Reader) Teller() *Teller {
	return &Teller{r: r, newest: make(map[blob.ID]*transcript.Transcript), history: r.turns.Of(), infos: make(map[string]*conversation.Info), turns: make(map[turnKey][]transcript.Message), calls: make(map[turnKey]*turnCalls)}
}

// Words returns what is known about an origin. It leaves out what is lost or damaged:
// people use a blame to find such damage.
func (t *Teller) Words(ctx context.Context, o *Origin) (*Words, error) {
	by := o.Writer
	if o.Kind != Agent || by.Conversation == "" {
		return &Words{}, nil
	}
	info, err := t.info(ctx, by.Conversation)
	if err != nil {
		return nil, err
	}
	w := &Words{Agent: info.Agent, Title: info.Title, turn: by.Turn, workspace: o.At.Workspace}
	if by.Turn == 0 {
		return w, nil
	}
	rec := *o.At
	if rec.Conversation != by.Conversation || rec.Turn != by.Turn || rec.Root.IsZero() || rec.Side == checkpoint.Before {
		// Another conversation's checkpoint saw the change, or it is not saved yet.
		rec = checkpoint.Record{Conversation: by.Conversation, Turn: by.Turn, MessageID: by.MessageID, Root: info.Root}
	}
	if err := t.ask(ctx, w, &rec, info.Root); err != nil || t.WithoutModels {
		return w, err
	}
	known, err := t.history.Known(ctx, &rec)
	if err != nil {
		return nil, err
	}
	w.Model = timeline.SpentOf(known).Model
	return w, nil
}

// ask finds the prompt of a checkpoint's turn, and a state that has the turn. Each state has
// all earlier turns: if the newest one still has the turn, as its message shows, it is read
// once for all turns.
func (t *Teller) ask(ctx context.Context, w *Words, rec *checkpoint.Record, newest blob.ID) error {
	if !newest.IsZero() && (rec.MessageID != "" || rec.Root == newest) {
		now := &Words{root: newest, turn: w.turn}
		if err := t.readNewest(ctx, newest); err != nil {
			return err
		}
		if err := t.readAhead(ctx, rec, newest); err != nil {
			return err
		}
		messages, err := t.Messages(ctx, now)
		if err != nil {
			return err
		}
		if len(messages) > 0 && messages[0].Role == transcript.User && messages[0].Kind == transcript.Text &&
			(messages[0].ID == rec.MessageID || rec.Root == newest) {
			w.root, w.Prompt = newest, messages[0].Text
			return nil
		}
	}
	w.root = rec.Root
	turn, err := t.r.turns.TurnAt(ctx, rec.Root, rec.Turn)
	if err == nil {
		w.Prompt = turn.Text()
	}
	return err
}

// Expect announces that the words of all lines of a file will be read, so that turns
// of a conversation are read together.
func (t *Teller) Expect(f *File) {
	seen := make([]bool, len(f.Origins))
	t.expects = make(map[string][]int)
	for _, line := range f.Lines {
		o := &f.Origins[line.Origin]
		if seen[line.Origin] || o.Kind != Agent || o.Writer.Turn == 0 {
			continue
		}
		seen[line.Origin] = true
		t.expects[o.Writer.Conversation] = append(t.expects[o.Writer.Conversation], int(o.Writer.Turn))
	}
	for _, turns := range t.expects {
		slices.Sort(turns) // as they are stored
	}
}

// aheadTurns are read together. What they hold must fit into the memory of the store.
const aheadTurns = 64

// readAhead reads the turn of a checkpoint with others that are expected.
func (t *Teller) readAhead(ctx context.Context, rec *checkpoint.Record, newest blob.ID) error {
	turns := t.expects[rec.Conversation]
	at := slices.Index(turns, int(rec.Turn))
	if at < 0 || t.newest[newest] == nil {
		return nil
	}
	n := min(len(turns), at+aheadTurns)
	err := t.newest[newest].ReadAhead(ctx, turns[at:n])
	t.expects[rec.Conversation] = slices.Delete(turns, at, n)
	return err
}

// readNewest reads the state of a conversation as it is now. A lost one is left out.
func (t *Teller) readNewest(ctx context.Context, root blob.ID) error {
	if _, ok := t.newest[root]; ok {
		return nil
	}
	state, err := t.r.transcripts.At(ctx, root)
	if errors.Is(err, conversation.ErrDataLoss) {
		state, err = nil, nil
	}
	if err == nil {
		t.newest[root] = state
	}
	return err
}

// info reads a conversation. For one that is gone it returns an empty record.
func (t *Teller) info(ctx context.Context, id string) (*conversation.Info, error) {
	if info := t.infos[id]; info != nil {
		return info, nil
	}
	info, err := t.r.conversations.Get(ctx, id)
	if errors.Is(err, conversation.ErrNotFound) || conversation.Damaged(err) {
		info, err = conversation.Info{ID: id}, nil
	}
	if err != nil {
		return nil, err
	}
	t.infos[id] = &info
	return &info, nil
}

// Messages returns what was said and done in the turn of an origin, without the states of
// subagents.
func (t *Teller) Messages(ctx context.Context, w *Words) ([]transcript.Message, error) {
	if w.root.IsZero() || w.turn == 0 {
		return nil, nil
	}
	key := turnKey{w.root, w.turn}
	if known, ok := t.turns[key]; ok {
		return known, nil
	}
	state, ok := t.newest[w.root]
	if !ok {
		var err error
		state, err = t.r.transcripts.At(ctx, w.root)
		if err != nil && !errors.Is(err, conversation.ErrDataLoss) {
			return nil, err
		}
		if err != nil {
			state = nil
		}
	}
	if state == nil {
		return nil, nil
	}
	var out []transcript.Message
	opts := &transcript.Options{TurnFrom: int(w.turn) - 1, TurnTo: int(w.turn), WithoutSubagents: true, WithoutSummaries: true, Lenient: true}
	if int(w.turn) <= state.Turns() {
		for m, err := range state.Messages(ctx, opts) {
			if err != nil {
				return nil, err
			}
			if m.Turn == int(w.turn) {
				out = append(out, m)
			}
		}
	}
	t.turns[key] = out
	return out, nil
}

// Call finds the call that wrote a line of a file: the last one of the turn whose edit of that
// file has it, or the only command of the turn if no edit has it and no subagent was at
// work in it. It returns nil if there is none.
func (t *Teller) Call(ctx context.Context, w *Words, path, line string) (*Call, error) {
	messages, err := t.Messages(ctx, w)
	if err != nil {
		return nil, err
	}
	key := turnKey{w.root, w.turn}
	calls := t.calls[key]
	if calls == nil {
		calls = readCalls(messages)
		t.calls[key] = calls
	}
	for _, edit := range slices.Backward(calls.edits[strings.TrimSuffix(line, "\n")]) {
		if edit.path == "" || edit.path == path || strings.HasSuffix(edit.path, "/"+path) {
			return edit.call, nil
		}
	}
	return calls.shell, nil
}

// turnCalls are the calls of a turn by the lines that they wrote. A file may have thousands of
// lines of one turn.
type turnCalls struct {
	edits map[string][]editCall
	shell *Call // the only command, if no subagent may have run another
}

type editCall struct {
	call *Call
	path string // as the agent has it, or ""
}

func readCalls(messages []transcript.Message) *turnCalls {
	out := &turnCalls{edits: make(map[string][]editCall)}
	number, commands := 0, 0
	helped := false // a subagent may have run commands, too
	for i, m := range messages {
		helped = helped || m.Subagent != "" || m.Tool != nil && m.Tool.Subagent != ""
		if m.Tool == nil || m.Subagent != "" {
			continue
		}
		number++
		call := &Call{Number: number, Tool: m.Tool.Name, ID: m.ID, Message: i}
		if call.Command = command(m.Tool); call.Command != "" {
			out.shell = call
			commands++
			continue
		}
		for line := range writtenLines(m.Tool) {
			if edits := out.edits[line]; len(edits) == 0 || edits[len(edits)-1].call != call {
				out.edits[line] = append(edits, editCall{call, m.Tool.Path})
			}
		}
	}
	if commands != 1 || helped {
		out.shell = nil
	}
	return out
}

// writtenLines yields the lines that a call of an edit tool may have written. Tools of some agents
// have them only in their input, unchanged or as lines of a diff.
func writtenLines(tool *transcript.Tool) iter.Seq[string] {
	return func(yield func(string) bool) {
		if tool.Diff != "" {
			for l := range strings.Lines(tool.Diff) {
				if line, added := strings.CutPrefix(strings.TrimSuffix(l, "\n"), "+"); added && !yield(line) {
					return
				}
			}
			return
		}
		input, _ := tool.Input.(map[string]any)
		for name, value := range input {
			text, _ := value.(string)
			if strings.HasPrefix(name, "old") {
				continue
			}
			for l := range strings.Lines(text) {
				line := strings.TrimSuffix(l, "\n")
				if !yield(line) {
					return
				}
				if line, added := strings.CutPrefix(line, "+"); added && !yield(line) {
					return
				}
			}
		}
	}
}

// command returns what a call of a shell ran, or "".
func command(tool *transcript.Tool) string {
	input, _ := tool.Input.(map[string]any)
	text, _ := input["command"].(string)
	return text
}
