package page

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/timeline"
	"github.com/stet-dev/stet/transcript"
)

const (
	followText = 64 << 10    // bytes of the text of one event
	followBeat = time.Second // of silence before a beat shows that the stream is open
)

// Follow first reports whether it continues at the reader's position, then sends
// events.
func (s *Service) Follow(ctx context.Context, req *stetv1.FollowRequest, stream *connect.ServerStream[stetv1.FollowResponse]) error {
	f := &follower{s: s, asked: req.GetOffsetKey()}
	for res, err := range s.db.Agents().Stream(ctx, req.GetId(), &cloudagent.StreamOptions{
		After: req.GetOffsetKey(), FilterHeavyStepData: true, MaxBlobsAfterPrefetch: -1, AllowTerminal: true, Heartbeat: followBeat,
	}) {
		if err != nil {
			return err
		}
		for _, out := range f.events(ctx, res) {
			if err := stream.Send(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// follower converts a stream to events of the page.
type follower struct {
	s     *Service
	asked string // the offset to continue from
	begun bool
}

func (f *follower) events(ctx context.Context, res *aiserverv1.StreamConversationResponse) []*stetv1.FollowResponse {
	var out []*stetv1.FollowResponse
	_, initial := res.GetMessage().(*aiserverv1.StreamConversationResponse_InitialState_)
	switch {
	case initial && f.asked == "":
		f.begun = true
		return []*stetv1.FollowResponse{{Kind: "beat"}} // the stream is open
	case initial:
		f.begun = true
		return []*stetv1.FollowResponse{{Kind: "restarted"}}
	case !f.begun && f.asked != "":
		out = append(out, &stetv1.FollowResponse{Kind: "resumed", OffsetKey: f.asked, Seq: seqOf(f.asked)})
	}
	f.begun = true
	if event := f.event(ctx, res); event != nil {
		event.Seq = seqOf(event.GetOffsetKey())
		out = append(out, event)
	}
	return out
}

func seqOf(offset string) uint64 {
	o, err := cloudagent.ParseOffset(offset)
	if err != nil {
		return 0
	}
	return o.Seq
}

func (f *follower) event(ctx context.Context, res *aiserverv1.StreamConversationResponse) *stetv1.FollowResponse {
	switch m := res.GetMessage().(type) {
	case *aiserverv1.StreamConversationResponse_InteractionUpdateWithOffset_:
		out := f.update(ctx, m.InteractionUpdateWithOffset.GetInteractionUpdate())
		out.OffsetKey = m.InteractionUpdateWithOffset.GetOffsetKey()
		return out
	case *aiserverv1.StreamConversationResponse_WorkflowStatusWithOffset_:
		return &stetv1.FollowResponse{OffsetKey: m.WorkflowStatusWithOffset.GetOffsetKey(), Kind: "status", Status: statusWord(m.WorkflowStatusWithOffset.GetWorkflowStatus())}
	case *aiserverv1.StreamConversationResponse_CloudAgentStateWithIdAndOffset_:
		return &stetv1.FollowResponse{OffsetKey: m.CloudAgentStateWithIdAndOffset.GetOffsetKey(), Kind: "state"}
	case *aiserverv1.StreamConversationResponse_TransientErrorWithOffset_:
		e := m.TransientErrorWithOffset
		return &stetv1.FollowResponse{OffsetKey: e.GetOffsetKey(), Kind: "error", Text: clipped(e.GetTransientError().GetErrorMessage(), followText)}
	}
	return nil
}

// statusWord spells a status as the page does.
func statusWord(s cloudagent.Status) string {
	name := strings.TrimPrefix(s.String(), "CLOUD_AGENT_WORKFLOW_STATUS_")
	return strings.ToLower(strings.ReplaceAll(name, "_", " "))
}

// update shows one update. Kinds without content for a reader only advance the offset.
func (f *follower) update(ctx context.Context, u *agentv1.InteractionUpdate) *stetv1.FollowResponse {
	switch m := u.GetMessage().(type) {
	case *agentv1.InteractionUpdate_TextDelta:
		return &stetv1.FollowResponse{Kind: "text", Text: shown(m.TextDelta.GetText())}
	case *agentv1.InteractionUpdate_ThinkingDelta:
		return &stetv1.FollowResponse{Kind: "thinking", Text: shown(m.ThinkingDelta.GetText())}
	case *agentv1.InteractionUpdate_UserMessageAppended:
		message := m.UserMessageAppended.GetUserMessage()
		if message.GetIsSimulatedMsg() {
			return &stetv1.FollowResponse{Kind: "summary", Text: shown(transcript.AutomaticWords(message.GetText()))}
		}
		return &stetv1.FollowResponse{Kind: "user", Text: shown(message.GetText())}
	case *agentv1.InteractionUpdate_ToolCallStarted:
		return f.call(ctx, m.ToolCallStarted.GetCallId(), m.ToolCallStarted.GetToolCall(), string(transcript.Running))
	case *agentv1.InteractionUpdate_ToolCallCompleted:
		return f.call(ctx, m.ToolCallCompleted.GetCallId(), m.ToolCallCompleted.GetToolCall(), "")
	case *agentv1.InteractionUpdate_ShellOutputDelta:
		return &stetv1.FollowResponse{Kind: "beat"}
	case *agentv1.InteractionUpdate_Summary:
		return &stetv1.FollowResponse{Kind: "summary", Text: shown(m.Summary.GetSummary())}
	case *agentv1.InteractionUpdate_TurnEnded:
		return &stetv1.FollowResponse{Kind: "turn"}
	}
	return &stetv1.FollowResponse{Kind: "beat"}
}

func shown(text string) string { return transcript.Visible(clipped(text, followText)) }

// call shows a tool call as a transcript does.
func (f *follower) call(ctx context.Context, id string, call *agentv1.ToolCall, status string) *stetv1.FollowResponse {
	out := &stetv1.FollowResponse{Kind: "tool", CallId: id, Tool: timeline.ToolName(call), Status: status}
	step := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: call}}
	turn, err := conversation.NewTurn(&agentv1.UserMessage{}, step)
	if err != nil {
		return out
	}
	reader := transcript.New(f.s.db.Conversations(), f.s.db.Blobs())
	opts := &transcript.Options{WithoutHeavyOutput: true, WithoutSubagents: true, Lenient: true}
	for m, err := range reader.State(&conversation.State{Turns: []conversation.Turn{turn}}).Messages(ctx, opts) {
		if err != nil || m.Tool == nil {
			continue
		}
		t := m.Tool
		out.Tool, out.Path, out.Diff = t.Name, transcript.Visible(t.Path), shown(t.Diff)
		out.Text, out.Added, out.Removed = shown(t.Output), uint32(t.Added), uint32(t.Removed)
		if command, ok := inputText(t.Input, "command"); ok && out.Path == "" {
			out.Path = transcript.Visible(command)
		}
		if status == "" {
			out.Status = string(t.Status)
		}
	}
	return out
}

// inputText returns an argument of a call, if it is text.
func inputText(input any, name string) (string, bool) {
	fields, ok := input.(map[string]any)
	if !ok {
		return "", false
	}
	text, ok := fields[name].(string)
	return text, ok
}
