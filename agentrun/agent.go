package agentrun

import (
	"context"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Agent decides what an agent does next.
//
// The turn holds everything it needs: an interrupted run continues from the latest
// checkpoint, perhaps on another machine, so an agent must not rely on memory. Saved
// decisions are not requested again.
type Agent interface {
	// Next returns the next step of a turn, or Done. An error ends the run; the
	// other side sees its text if it is a *Failure.
	Next(ctx context.Context, t *Turn) (Step, error)
}

// AgentFunc is a function that is an Agent.
type AgentFunc func(ctx context.Context, t *Turn) (Step, error)

// Next calls the function.
func (f AgentFunc) Next(ctx context.Context, t *Turn) (Step, error) { return f(ctx, t) }

// Spawner is implemented by agents that use other agents as subagents. Without it an
// agent does that work itself.
type Spawner interface {
	Subagent(ctx context.Context, task *agentv1.TaskArgs) (Agent, error)
}

// Turn is the input of an agent. The agent must not change it.
type Turn struct {
	// Conversation is the conversation's id, as the client gave it.
	Conversation string
	// Action is the action that opened the stream, or a later one of the client. It is a
	// ResumeAction if a turn continues.
	Action *agentv1.ConversationAction
	// Request is the first frame of the stream, with model, tools and the like.
	Request *agentv1.AgentRunRequest
	// Number counts turns from 1.
	Number int
	// User is the message that began the turn, nil if a command did.
	User *agentv1.UserMessage
	// Steps is what happened in the turn so far, results included.
	Steps []*agentv1.ConversationStep
	// State is the state as it is now. Its parts are in Blobs.
	State *agentv1.ConversationStateStructure
	Blobs blob.Store
	// Depth is 0 for the agent itself, 1 for its subagents, and so on, and Task is
	// the task of a subagent.
	Depth int
	Task  *agentv1.TaskArgs
}

// Step is what an agent does: SayStep, ThinkStep, CallStep, SummaryStep, PlanStep
// or Done, or one of them as a CountedStep.
type Step interface{ step() }

// SayStep says something to the user.
type SayStep struct{ Text string }

// ThinkStep is a thought of the agent.
type ThinkStep struct{ Text string }

// CallStep calls tools, one after another, after saying Text if there is one. A call
// without an id gets one. Supported are ShellToolCall, EditToolCall (which writes
// stream_content), ReadToolCall, DeleteToolCall, UpdateTodosToolCall and
// TaskToolCall.
type CallStep struct {
	Text  string
	Calls []*agentv1.ToolCall
}

// SummaryStep replaces the messages of the prompt with a summary. The replaced
// messages are archived.
type SummaryStep struct{ Text string }

// PlanStep sets the conversation's plan.
type PlanStep struct{ Text string }

// Done ends the turn.
type Done struct{}

// CountedStep is a step with the tokens of the model's context after it, which become the
// token details of the state.
type CountedStep struct {
	Step   Step
	Tokens *agentv1.ConversationTokenDetails
}

func (CountedStep) step() {}
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

// Todos returns the call that replaces the todo list.
func Todos(items ...*agentv1.TodoItem) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_UpdateTodosToolCall{UpdateTodosToolCall: &agentv1.UpdateTodosToolCall{Args: &agentv1.UpdateTodosArgs{Todos: items}}}}
}

// Task returns the call that gives work to a subagent.
func Task(description, prompt string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_TaskToolCall{TaskToolCall: &agentv1.TaskToolCall{Args: &agentv1.TaskArgs{Description: description, Prompt: prompt}}}}
}
