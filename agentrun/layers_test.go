package agentrun_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// lazy is a layer that hands blobs on when it is flushed, and not before.
type lazy struct {
	blob.Store
	mu   sync.Mutex // guards held
	held []blob.Blob
}

func (l *lazy) Put(_ context.Context, blobs ...blob.Blob) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range blobs {
		b.Data = append([]byte(nil), b.Data...)
		l.held = append(l.held, b)
	}
	return nil
}

func (l *lazy) Flush(ctx context.Context) error {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	if err := l.Store.Put(ctx, held...); err != nil {
		return err
	}
	return l.Store.Flush(ctx)
}

// A client that saves a state checks that everything it names is there, so a
// checkpoint that is announced too early ends the run.
func TestBlobsAreAtTheClientBeforeTheCheckpoint(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{
		Agent: agentrun.NewScripted(everything()),
		Stack: func(peer blob.Store) blob.Store { return &lazy{Store: peer} },
	})
	c := newClient(t, nil)
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(say("m1", "hello")))
	must(t, err)
	if n := len(c.state(t).GetTurns()[0].GetAgentConversationTurn().GetSteps()); n != 7 {
		t.Errorf("the turn has %d steps", n)
	}
}

// The results of a call are larger than a row, and are told again as they were.
func TestLargeResultsSurviveARestart(t *testing.T) {
	agent := agentrun.NewScripted([]agentrun.Line{{Shell: "cat"}, {Say: "long"}})
	s := listen(t, agentrun.ServeOptions{Agent: agent})
	c := newClient(t, nil)
	long := strings.Repeat("0123456789abcdef", 160<<10) // 2.5 MiB
	c.tools.block = func(context.Context, *agentv1.ExecServerMessage) error {
		s.breakAll()
		return nil
	}
	executed := 0
	tool := agentrun.ExecutorFunc(func(ctx context.Context, req *agentv1.ExecServerMessage, reply func(*agentv1.ExecClientMessage)) error {
		executed++
		return c.tools.Execute(ctx, req, func(m *agentv1.ExecClientMessage) {
			m.GetShellResult().GetSuccess().Stdout = long
			reply(m)
		})
	})
	req := c.request(say("m1", "hello"))
	req.Executor, req.Attempts = tool, -1
	if _, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req); !errors.Is(err, agentrun.ErrConnectionLost) {
		t.Fatalf("the run ended with %v", err)
	}
	c = c.reopen(t, c.rows, nil)
	req = c.request(agentrun.Resume())
	req.Executor = tool
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	out := c.state(t).GetTurns()[0].GetAgentConversationTurn().GetSteps()[0].GetToolCall().GetShellToolCall().GetResult().GetSuccess().GetStdout()
	if executed != 1 || len(out) > 600<<10 || !strings.HasPrefix(out, long[:1000]) || !strings.HasSuffix(out, long[len(long)-1000:]) || !strings.Contains(out, "bytes left out") {
		t.Errorf("executed %d times, the output has %d bytes", executed, len(out))
	}
}

// reader is an executor that knows that nothing it does changes anything.
type reader struct{ agentrun.ExecutorFunc }

func (reader) Repeatable(*agentv1.ExecServerMessage) bool { return true }

func TestWhatChangesNothingMayBeRepeated(t *testing.T) {
	c := newClient(t, nil)
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Shell: "ls"}})})
	rows := &failing{Store: c.rows, bad: second("stet:exec:")}
	req := c.request(say("m1", "hello"))
	req.Ledger = agentrun.NewLedger(rows, "shop")
	if _, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req); !errors.Is(err, errDisk) {
		t.Fatalf("the run ended with %v", err)
	}
	req = c.request(agentrun.Resume())
	req.Executor = reader{c.tools.Execute}
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	for id, n := range c.tools.counts() {
		if n != 2 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
}

// A server that asks without end is refused.
func TestAServerThatAsksWithoutEnd(t *testing.T) {
	s := &flood{}
	c := newClient(t, nil)
	c.tools.block = func(ctx context.Context, _ *agentv1.ExecServerMessage) error {
		<-ctx.Done()
		return ctx.Err()
	}
	_, err := agentrun.Run(context.Background(), s, c.request(say("m1", "hello")))
	if !errors.Is(err, agentrun.ErrProtocol) {
		t.Errorf("the run ended with %v", err)
	}
}

// flood is a stream on which nothing but calls come.
type flood struct {
	ctx context.Context
	n   uint32
}

func (f *flood) Open(ctx context.Context) (agentrun.Stream, error) { return &flood{ctx: ctx}, nil }
func (f *flood) Send(*agentv1.AgentClientMessage) error            { return nil }
func (f *flood) CloseSend() error                                  { return nil }
func (f *flood) Receive() (*agentv1.AgentServerMessage, error) {
	if f.ctx.Err() != nil {
		return nil, f.ctx.Err()
	}
	f.n++
	return &agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ExecServerMessage{ExecServerMessage: &agentv1.ExecServerMessage{
		Id: f.n, Message: &agentv1.ExecServerMessage_ShellArgs{ShellArgs: &agentv1.ShellArgs{Command: "x"}},
	}}}, nil
}
