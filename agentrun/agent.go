package agentrun

import (
	"context"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Agent decides what an agent does next.
//
// Everything that it needs to know is in the turn: a run that was interrupted
// goes on from the latest checkpoint, perhaps on another machine, so what an
// agent keeps in memory is lost. What it decided and what was saved is not asked
// for again.
type Agent interface {
	// Next returns the next step of a turn, or Done. An error ends the run; the
	// other side sees its text if it is a *Failure.
	Next(ctx context.Context, t *Turn) (Step, error)
}

// AgentFunc is a function that is an Agent.
type AgentFunc func(ctx context.Context, t *Turn) (Step, error)

// Next calls the function.
func (f AgentFunc) Next(ctx context.Context, t *Turn) (Step, error) { return f(ctx, t) }

// Spawner is implemented by agents that have others do the work of subagents.
// Without it an agent does that work itself.
type Spawner interface {
	Subagent(ctx context.Context, task *agentv1.TaskArgs) (Agent, error)
}

// Turn is what an agent is told. It may read everything and change nothing.
type Turn struct {
	// Conversation is the conversation's id, as the client gave it.
	Conversation string
	// Action is what the stream was opened with, or what the client asked for
	// since. It is a ResumeAction where a turn goes on.
	Action *agentv1.ConversationAction
	// Request is the first frame of the stream, with model, tools and the like.
	Request *agentv1.AgentRunRequest
	// Number counts turns from 1.
	Number int
	// User is the message that began the turn, nil where a command did.
	User *agentv1.UserMessage
	// Steps is what happened in the turn so far, results included.
	Steps []*agentv1.ConversationStep
	// State is the state as it is now. Its parts are in Blobs.
	State *agentv1.ConversationStateStructure
	Blobs blob.Store
	// Depth is 0 for the agent itself, 1 for its subagents, and so on, and Task
	// what a subagent is to do.
	Depth int
	Task  *agentv1.TaskArgs
}

// Step is what an agent does: SayStep, ThinkStep, CallStep, SummaryStep, PlanStep
// or Done.
type Step interface{ step() }

// SayStep says something to the user.
type SayStep struct{ Text string }

// ThinkStep tells what the agent thinks.
type ThinkStep struct{ Text string }

// CallStep calls tools, one after another, after saying Text if there is one. A
// call without an id gets one. Known are ShellToolCall, EditToolCall (which writes
// stream_content), ReadToolCall, DeleteToolCall, UpdateTodosToolCall and
// TaskToolCall.
type CallStep struct {
	Text  string
	Calls []*agentv1.ToolCall
}

// SummaryStep replaces the messages of the prompt by a summary. What it replaces
// is archived.
type SummaryStep struct{ Text string }

// PlanStep sets the conversation's plan.
type PlanStep struct{ Text string }

// Done ends the turn.
type Done struct{}

func (SayStep) step()     {}
func (ThinkStep) step()   {}
func (CallStep) step()    {}
func (SummaryStep) step() {}
func (PlanStep) step()    {}
func (Done) step()        {}

// Call returns the step that calls tools.
func Call(calls ...*agentv1.ToolCall) Step { return CallStep{Calls: calls} }

// Shell returns the call of a command.
func Shell(command string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{Args: &agentv1.ShellArgs{Command: command}}}}
}

// Edit returns the call that gives a file new content.
func Edit(path, content string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{Args: &agentv1.EditArgs{Path: path, StreamContent: &content}}}}
}

// Todos returns the call that replaces the to-do list.
func Todos(items ...*agentv1.TodoItem) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_UpdateTodosToolCall{UpdateTodosToolCall: &agentv1.UpdateTodosToolCall{Args: &agentv1.UpdateTodosArgs{Todos: items}}}}
}

// Task returns the call that hands work to a subagent.
func Task(description, prompt string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_TaskToolCall{TaskToolCall: &agentv1.TaskToolCall{Args: &agentv1.TaskArgs{Description: description, Prompt: prompt}}}}
}
