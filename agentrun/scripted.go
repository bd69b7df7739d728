package agentrun

import (
	"context"
	"fmt"
	"sync"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Line is a line of a script. Exactly one of its fields is set.
type Line struct {
	Say   string `json:"say,omitempty"`
	Think string `json:"think,omitempty"`
	Shell string `json:"shell,omitempty"`
	// Edit gives a file new content.
	Edit *FileEdit `json:"edit,omitempty"`
	// Todo replaces the to-do list.
	Todo []string `json:"todo,omitempty"`
	Plan string   `json:"plan,omitempty"`
	// Subagent gives work to a subagent with its own script.
	Subagent *SubScript `json:"subagent,omitempty"`
	// Fail ends the run with an error with this text.
	Fail string `json:"fail,omitempty"`
	// Disconnect breaks the connection once; the resumed run continues after this line.
	Disconnect bool `json:"disconnect,omitempty"`
}

// FileEdit is a file and its new content.
type FileEdit struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// SubScript is the prompt of a subagent and its script.
type SubScript struct {
	Prompt string `json:"prompt"`
	Lines  []Line `json:"lines"`
}

// Scripted is an agent that follows a script, for tests and demonstrations. It finds
// its place by the steps of the turn alone. It is safe for concurrent use.
type Scripted struct {
	script
	mu     sync.Mutex // guards broken
	broken map[string]bool
}

// script is the script of an agent or a subagent.
type script struct {
	owner *Scripted
	turns [][]Line
}

var (
	_ Agent   = (*Scripted)(nil)
	_ Spawner = (*Scripted)(nil)
)

// NewScripted returns an agent that plays the given lines, one list for each turn
// of a conversation. Further turns are empty.
func NewScripted(turns ...[]Line) *Scripted {
	s := &Scripted{broken: make(map[string]bool)}
	s.script = script{owner: s, turns: turns}
	return s
}

// Next implements Agent.
func (s script) Next(_ context.Context, t *Turn) (Step, error) {
	if t.Action.GetSummarizeAction() != nil {
		return SummaryStep{Text: fmt.Sprintf("A conversation of %d turns.", t.Number)}, nil
	}
	if t.Number < 1 || t.Number > len(s.turns) {
		return Done{}, nil
	}
	played := 0
	for i, line := range s.turns[t.Number-1] {
		switch {
		case line.Fail != "" || line.Disconnect:
			if played == len(t.Steps) && s.owner.once(t, i, line) {
				return nil, line.err()
			}
		case played == len(t.Steps):
			return line.step()
		default:
			played++
		}
	}
	return Done{}, nil
}

// once reports whether to play a line; one that breaks the connection is played only
// the first time.
func (s *Scripted) once(t *Turn, index int, line Line) bool {
	if !line.Disconnect {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s/%s/%d/%d", t.Conversation, t.Task.GetPrompt(), t.Number, index)
	first := !s.broken[key]
	s.broken[key] = true
	return first
}

// Subagent implements Spawner: a subagent plays the lines for its prompt.
func (s script) Subagent(_ context.Context, task *agentv1.TaskArgs) (Agent, error) {
	for _, turn := range s.turns {
		for _, line := range turn {
			if line.Subagent != nil && line.Subagent.Prompt == task.GetPrompt() {
				return script{owner: s.owner, turns: [][]Line{line.Subagent.Lines}}, nil
			}
		}
	}
	return nil, &Failure{Text: "the script has no subagent for this prompt"}
}

func (l *Line) err() error {
	if l.Disconnect {
		return fmt.Errorf("scripted: %w", ErrConnectionLost)
	}
	return &Failure{Text: l.Fail}
}

func (l *Line) step() (Step, error) {
	switch {
	case l.Say != "":
		return SayStep{Text: l.Say}, nil
	case l.Think != "":
		return ThinkStep{Text: l.Think}, nil
	case l.Shell != "":
		return Call(Shell(l.Shell)), nil
	case l.Edit != nil:
		return Call(Edit(l.Edit.Path, l.Edit.Content)), nil
	case l.Todo != nil:
		items := make([]*agentv1.TodoItem, len(l.Todo))
		for i, text := range l.Todo {
			items[i] = &agentv1.TodoItem{Id: fmt.Sprint(i + 1), Content: text, Status: agentv1.TodoStatus_TODO_STATUS_PENDING}
		}
		return Call(Todos(items...)), nil
	case l.Plan != "":
		return PlanStep{Text: l.Plan}, nil
	case l.Subagent != nil:
		return Call(Task(l.Subagent.Prompt, l.Subagent.Prompt)), nil
	}
	return nil, invalid("an empty line in a script")
}
