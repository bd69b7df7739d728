package agentrun_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv"
)

// recorded is a server that sends the same frames on every stream and ends it.
type recorded struct{ frames []*agentv1.AgentServerMessage }

func (r *recorded) Open(ctx context.Context) (agentrun.Stream, error) {
	return &recordedStream{ctx: ctx, left: r.frames}, nil
}

type recordedStream struct {
	ctx  context.Context
	left []*agentv1.AgentServerMessage
}

func (s *recordedStream) Send(*agentv1.AgentClientMessage) error { return s.ctx.Err() }
func (s *recordedStream) CloseSend() error                       { return nil }
func (s *recordedStream) Receive() (*agentv1.AgentServerMessage, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	if len(s.left) == 0 {
		return nil, io.EOF
	}
	msg := s.left[0]
	s.left = s.left[1:]
	return proto.CloneOf(msg), nil
}

func checkpointOf(state *agentv1.ConversationStateStructure) *agentv1.AgentServerMessage {
	return &agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ConversationCheckpointUpdate{ConversationCheckpointUpdate: state}}
}

// begun returns a state of one turn that a message began.
func begun(t *testing.T, c *client, id string) *agentv1.ConversationStateStructure {
	t.Helper()
	turn, err := conversation.NewTurn(message(id, "hello"))
	must(t, err)
	b, msg := blob.New(turn.Structure.Bytes()), blob.New(turn.UserMessage.Bytes())
	must(t, c.blobs.Put(context.Background(), b, msg))
	return &agentv1.ConversationStateStructure{Turns: [][]byte{b.ID.Bytes()}}
}

// The server has said everything and ended the stream; that saving takes longer
// than it may be silent must not lose what it said.
func TestASlowSaveAtTheEndIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const silence = 50 * time.Millisecond
		slow := false
		c := newClient(t, &agentrun.HandlerOptions{OnCheckpoint: func(ctx context.Context, cp agentrun.Checkpoint) error {
			if slow = !slow; slow {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(6 * silence):
				return nil
			}
		}})
		first := begun(t, c, "m1")
		last := proto.CloneOf(first)
		last.ReadPaths = []string{"the end"}
		req := c.request(say("m1", "hello"))
		req.Silence = silence
		_, err := agentrun.Run(context.Background(), &recorded{[]*agentv1.AgentServerMessage{checkpointOf(first), checkpointOf(last)}}, req)
		must(t, err)
		equal(t, "latest state", c.h.Latest(), last)
	})
}

// An executor that gives no result must not keep the server waiting.
func TestACallWithoutAResultEnds(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Shell: "true"}, {Say: "on we go"}})})
	c := newClient(t, nil)
	req := c.request(say("m1", "hello"))
	req.Executor = agentrun.ExecutorFunc(func(context.Context, *agentv1.ExecServerMessage, func(*agentv1.ExecClientMessage)) error { return nil })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := agentrun.Run(ctx, agentrun.Connect(s.client), req)
	must(t, err)
	steps := c.state(t).GetTurns()[0].GetAgentConversationTurn().GetSteps()
	if len(steps) != 2 || !strings.Contains(steps[0].GetToolCall().GetShellToolCall().GetResult().GetSpawnError().GetError(), "no result") {
		t.Errorf("steps are %v", steps)
	}
}

// Models name their calls as they like, also twice the same. Each call is
// executed nevertheless.
func TestCallsOfOneNameAreAllExecuted(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.AgentFunc(func(_ context.Context, turn *agentrun.Turn) (agentrun.Step, error) {
		if len(turn.Steps) == 2 {
			return agentrun.Done{}, nil
		}
		call := agentrun.Shell("go test")
		call.ToolCallId = proto.String("call_0")
		return agentrun.Call(call), nil
	})})
	for name, ledger := range map[string]bool{"with a ledger": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, nil)
			var ran atomic.Int64
			c.tools.block = func(context.Context, *agentv1.ExecServerMessage) error { ran.Add(1); return nil }
			q := agentrun.NewQueue()
			for _, id := range []string{"m1", "m2"} {
				_, err := q.Add(message(id, "test it"))
				must(t, err)
			}
			req := c.request(nil)
			req.Queue = q
			if !ledger {
				req.Ledger = nil
			}
			_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
			must(t, err)
			if ran.Load() != 4 {
				t.Errorf("%d calls were executed, want 4", ran.Load())
			}
		})
	}
}

// impatient is a server that ends every stream when it has the result of a call,
// without a state that contains it.
type impatient struct {
	frames   []*agentv1.AgentServerMessage
	answered chan struct{} // closed when the present stream has the result
}

func (i *impatient) Open(ctx context.Context) (agentrun.Stream, error) {
	i.answered = make(chan struct{})
	return &impatientStream{recordedStream{ctx: ctx, left: i.frames}, i.answered}, nil
}

type impatientStream struct {
	recordedStream
	answered chan struct{}
}

func (s *impatientStream) Send(msg *agentv1.AgentClientMessage) error {
	if msg.GetExecClientMessage() != nil {
		close(s.answered)
	}
	return nil
}

func (s *impatientStream) Receive() (*agentv1.AgentServerMessage, error) {
	msg, err := s.recordedStream.Receive()
	if err == io.EOF {
		select {
		case <-s.answered:
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		}
	}
	return msg, err
}

// deploying returns a server that has the call c1 executed.
func deploying(t *testing.T, c *client) *impatient {
	t.Helper()
	state := begun(t, c, "m1")
	state.PendingToolCalls = []string{`{"type":"tool-call","toolCallId":"c1","toolName":"shell","args":{"command":"deploy"}}`}
	call := &agentv1.ExecServerMessage{Id: 1, ExecId: "c1", Message: &agentv1.ExecServerMessage_ShellArgs{ShellArgs: &agentv1.ShellArgs{Command: "deploy"}}}
	return &impatient{frames: []*agentv1.AgentServerMessage{
		checkpointOf(state), {Message: &agentv1.AgentServerMessage_ExecServerMessage{ExecServerMessage: call}},
	}}
}

// A result that the server has and the ledger does not would make the call one of
// unknown outcome.
func TestAResultIsNotedBeforeItIsSent(t *testing.T) {
	c := newClient(t, nil)
	s := deploying(t, c)
	noted := second("stet:exec:")
	rows := &failing{Store: c.rows, bad: func(b *kv.Batch) bool {
		if !sets(b, "stet:exec:") || !noted(b) {
			return false
		}
		select {
		case <-s.answered:
			t.Error("the result was sent before it was noted")
		case <-time.After(50 * time.Millisecond):
		}
		return false
	}}
	req := c.request(say("m1", "hello"))
	req.Ledger = agentrun.NewLedger(rows, "shop")
	_, err := agentrun.Run(context.Background(), s, req)
	must(t, err)
}

// A call that the state still calls pending was executed, whatever the server
// made of the result.
func TestAPendingCallIsRememberedAfterARegularEnd(t *testing.T) {
	c := newClient(t, nil)
	s := deploying(t, c)
	for _, action := range []*agentv1.ConversationAction{say("m1", "hello"), agentrun.Resume()} {
		_, err := agentrun.Run(context.Background(), s, c.request(action))
		must(t, err)
	}
	if n := c.tools.counts()["c1"]; n != 1 {
		t.Errorf("the call was executed %d times", n)
	}
}

// Files that are too large for a message are edited and deleted like others.
func TestLargeFilesAreEdited(t *testing.T) {
	remove := &agentv1.ToolCall{Tool: &agentv1.ToolCall_DeleteToolCall{DeleteToolCall: &agentv1.DeleteToolCall{Args: &agentv1.DeleteArgs{Path: "old.json"}}}}
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.AgentFunc(func(_ context.Context, turn *agentrun.Turn) (agentrun.Step, error) {
		switch len(turn.Steps) {
		case 0:
			return agentrun.Call(agentrun.Edit("lock.json", "{}\n")), nil
		case 1:
			return agentrun.Call(remove), nil
		}
		return agentrun.Done{}, nil
	})})
	c := newClient(t, nil)
	large := strings.Repeat("a line\n", 1<<20)
	must(t, os.WriteFile(filepath.Join(c.tools.dir, "lock.json"), []byte(large), 0o600))
	req := c.request(say("m1", "hello"))
	req.Executor = agentrun.ExecutorFunc(func(ctx context.Context, req *agentv1.ExecServerMessage, reply func(*agentv1.ExecClientMessage)) error {
		if req.GetDeleteArgs() == nil {
			return c.tools.Execute(ctx, req, reply)
		}
		success := &agentv1.DeleteSuccess{Path: "old.json", PrevContent: large}
		reply(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_DeleteResult{DeleteResult: &agentv1.DeleteResult{Result: &agentv1.DeleteResult_Success{Success: success}}}})
		return nil
	})
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	steps := c.state(t).GetTurns()[0].GetAgentConversationTurn().GetSteps()
	if len(steps) != 2 {
		t.Fatalf("the turn has %d steps", len(steps))
	}
	edit := steps[0].GetToolCall().GetEditToolCall().GetResult().GetSuccess()
	if edit.GetAfterFullFileContent() != "{}\n" || !strings.Contains(edit.GetBeforeFullFileContent(), "bytes left out") {
		t.Errorf("the edit's result has %d bytes before and says %q after", len(edit.GetBeforeFullFileContent()), edit.GetAfterFullFileContent())
	}
	if !strings.Contains(steps[1].GetToolCall().GetDeleteToolCall().GetResult().GetSuccess().GetPrevContent(), "bytes left out") {
		t.Error("the deleted file is in the step as a whole")
	}
	// What the state cannot hold it says nothing about: no content would mean
	// that there was no file.
	if n := len(c.h.Latest().GetFileStatesV2()); n != 0 {
		t.Errorf("the state tells of %d files", n)
	}
}

// A message that is sent during a turn is not lost with the connection.
func TestAMessageDuringATurnSurvivesALostConnection(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Shell: "serve"}, {Say: "it runs"}}, []agentrun.Line{{Say: "hello again"}})})
	c := newClient(t, nil)
	actions := make(chan *agentv1.ConversationAction)
	c.tools.block = func(context.Context, *agentv1.ExecServerMessage) error {
		actions <- say("m2", "one more")
		s.breakAll()
		return nil
	}
	req := c.request(say("m1", "hello"))
	req.Actions = actions
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	if got := messages(c.state(t)); got != "m1 m2" {
		t.Errorf("messages are %q", got)
	}
}

// parallel is a server with two calls under way, which announces a state when it
// has the result of one of them.
type parallel struct {
	recordedStream
	results map[string]chan struct{} // closed when the result of a call is there
	await   map[int]string           // the result that the n-th frame waits for
	n       int
}

func (p *parallel) Open(ctx context.Context) (agentrun.Stream, error) { p.ctx = ctx; return p, nil }

func (p *parallel) Send(msg *agentv1.AgentClientMessage) error {
	if id := msg.GetExecClientMessage().GetExecId(); id != "" {
		close(p.results[id])
	}
	return nil
}

func (p *parallel) Receive() (*agentv1.AgentServerMessage, error) {
	if id := p.await[p.n]; id != "" {
		select {
		case <-p.results[id]:
		case <-p.ctx.Done():
			return nil, p.ctx.Err()
		}
	}
	p.n++
	return p.recordedStream.Receive()
}

// A workspace that was captured in the middle of a call is captured again when
// the call is over.
func TestACallThatOutlastsACheckpointIsCaptured(t *testing.T) {
	ctx := context.Background()
	c := newClient(t, nil)
	w, err := checkpoint.New(c.blobs, c.rows, &checkpoint.Options{Conversations: checkpoint.Of(c.store)}).Open(ctx, c.tools.dir)
	must(t, err)
	defer w.Close()
	var saved []agentrun.Checkpoint
	between := make(chan struct{}) // closed when the state between the two results is saved
	c.h, err = agentrun.NewHandler(ctx, c.blobs, c.conv, &agentrun.HandlerOptions{Workspace: w, OnCheckpoint: func(_ context.Context, cp agentrun.Checkpoint) error {
		if saved = append(saved, cp); len(saved) == 2 {
			close(between)
		}
		return nil
	}})
	must(t, err)
	c.tools.block = func(ctx context.Context, req *agentv1.ExecServerMessage) error {
		if req.GetExecId() != "slow" {
			return nil
		}
		select {
		case <-between:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	call := func(id uint32, name string) *agentv1.AgentServerMessage {
		return &agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ExecServerMessage{ExecServerMessage: &agentv1.ExecServerMessage{
			Id: id, ExecId: name, Message: &agentv1.ExecServerMessage_WriteArgs{WriteArgs: &agentv1.WriteArgs{Path: name, FileText: name}},
		}}}
	}
	state := begun(t, c, "m1")
	one, both := proto.CloneOf(state), proto.CloneOf(state)
	one.ReadPaths, both.ReadPaths = []string{"one"}, []string{"one", "two"}
	s := &parallel{
		results: map[string]chan struct{}{"slow": make(chan struct{}), "fast": make(chan struct{})},
		await:   map[int]string{3: "fast", 4: "slow"},
	}
	s.left = []*agentv1.AgentServerMessage{checkpointOf(state), call(1, "slow"), call(2, "fast"), checkpointOf(one), checkpointOf(both)}
	_, err = agentrun.Run(ctx, s, c.request(say("m1", "hello")))
	must(t, err)
	if len(saved) != 3 || saved[2].Files == nil || saved[2].Files.Record.FilesChanged != 1 {
		t.Errorf("the last of %d checkpoints has the files %+v", len(saved), saved[len(saved)-1].Files)
	}
}
