package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/transcript"
)

// failing is a row store whose commits fail when bad says so.
type failing struct {
	kv.Store
	bad func(*kv.Batch) bool
}

var errDisk = errors.New("disk is gone")

func (f *failing) Commit(ctx context.Context, b *kv.Batch) error {
	if f.bad(b) {
		return errDisk
	}
	return f.Store.Commit(ctx, b)
}

// sets reports whether a batch sets a row of a kind.
func sets(b *kv.Batch, prefix string) bool {
	for _, s := range b.Set {
		if strings.HasPrefix(s.Key, prefix) {
			return true
		}
	}
	return false
}

// second makes the second commit of a kind fail, and those after it.
func second(prefix string) func(*kv.Batch) bool {
	seen := 0
	return func(b *kv.Batch) bool {
		if sets(b, prefix) {
			seen++
		}
		return seen >= 2
	}
}

// reopen makes a client of the next process over the same store and workspace.
func (c *client) reopen(t testing.TB, rows kv.Store, opts *agentrun.HandlerOptions) *client {
	t.Helper()
	ctx := context.Background()
	next := *c
	next.store = conversation.New(c.blobs, rows, nil)
	var err error
	next.conv, err = next.store.Open(ctx, "shop")
	must(t, err)
	next.h, err = agentrun.NewHandler(ctx, c.blobs, next.conv, opts)
	must(t, err)
	return &next
}

func TestAFailingSaveStopsTheRun(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(everything())})
	c := newClient(t, nil)
	saves := 0
	rows := &failing{Store: c.rows, bad: func(b *kv.Batch) bool {
		if sets(b, "stet:save:") {
			saves++
		}
		return saves >= 4 && sets(b, "stet:save:")
	}}
	c = c.reopen(t, rows, nil)
	result, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(say("m1", "hello")))
	if !errors.Is(err, errDisk) {
		t.Fatalf("the run ended with %v", err)
	}
	if result.Checkpoints != 3 || result.Streams != 1 {
		t.Errorf("result is %+v, want 3 checkpoints on one stream", result)
	}
	// The to-do list was the fourth thing to save; nothing after it was executed.
	if n := len(c.tools.counts()); n != 0 {
		t.Errorf("%d calls were executed whose state was not saved", n)
	}
}

func TestARefusedCheckpointStopsTheRun(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(everything())})
	refused := errors.New("refused")
	c := newClient(t, &agentrun.HandlerOptions{OnCheckpoint: func(context.Context, agentrun.Checkpoint) error { return refused }})
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(say("m1", "hello")))
	if !errors.Is(err, refused) || c.h.Latest() != nil {
		t.Errorf("the run ended with %v, latest %v", err, c.h.Latest())
	}
}

func TestACheckpointWithoutItsBlobsIsRefused(t *testing.T) {
	c := newClient(t, nil)
	state := &agentv1.ConversationStateStructure{Todos: [][]byte{blob.Sum([]byte("never stored")).Bytes()}}
	err := c.h.HandleCheckpoint(context.Background(), state)
	if !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a state with a hole: %v", err)
	}
	if c.h.Latest() != nil || c.h.Count() != 0 {
		t.Error("it became the latest one")
	}
	must(t, c.h.HandleCheckpoint(context.Background(), &agentv1.ConversationStateStructure{}))
}

func TestATranscriptThatCannotBeWrittenIsReported(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Say: "hi"}}, []agentrun.Line{{Say: "ho"}})})
	c := newClient(t, nil)
	dir := filepath.Join(t.TempDir(), "transcripts")
	must(t, os.WriteFile(dir, []byte("a file in the way"), 0o600))
	writer := transcript.NewBackground(transcript.New(c.store, c.blobs), dir, nil)
	h, err := agentrun.NewHandler(context.Background(), c.blobs, c.conv, &agentrun.HandlerOptions{Transcript: writer})
	must(t, err)
	c.h = h
	result, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(say("m1", "hello")))
	must(t, err)
	if result.Transcript == nil {
		t.Error("nobody was told that the transcript is missing")
	}
	if messages(c.state(t)) != "m1" {
		t.Error("the state was not saved")
	}
	must(t, os.Remove(dir))
	result, err = agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(say("m2", "hello")))
	must(t, err)
	must(t, result.Transcript)
	data, err := os.ReadFile(transcript.FileOf(dir, "shop"))
	must(t, err)
	if !strings.Contains(string(data), "hi") || !strings.Contains(string(data), "ho") {
		t.Errorf("the transcript is %q", data)
	}
	must(t, writer.Close(context.Background()))
	result, err = agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(say("m3", "hello")))
	must(t, err)
	if !errors.Is(result.Transcript, transcript.ErrClosed) {
		t.Errorf("a closed writer: %v", result.Transcript)
	}
}

func TestCancelling(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Say: "hi"}, {Shell: "sleep"}, {Say: "never"}}, []agentrun.Line{{Say: "again"}})})
	c := newClient(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var stopped atomic.Bool
	c.tools.block = func(ctx context.Context, _ *agentv1.ExecServerMessage) error {
		cancel()
		<-ctx.Done()
		stopped.Store(true)
		return ctx.Err()
	}
	req := c.request(say("m1", "hello"))
	q := agentrun.NewQueue()
	_, err := q.Add(message("m2", "next"))
	must(t, err)
	req.Queue = q
	result, err := agentrun.Run(ctx, agentrun.Connect(s.client), req)
	if !errors.Is(err, context.Canceled) || result.Streams != 1 {
		t.Fatalf("the run ended with %v, %+v", err, result)
	}
	if !stopped.Load() {
		t.Error("the command goes on")
	}
	state := c.state(t)
	steps := state.GetTurns()[0].GetAgentConversationTurn().GetSteps()
	if len(steps) != 2 || len(state.GetPendingToolCalls()) != 0 {
		t.Errorf("steps are %v, pending %v", steps, state.GetPendingToolCalls())
	}
	if got := q.Unprocessed(); len(got) != 1 || got[0].GetMessageId() != "m2" {
		t.Errorf("the queue holds %v", got)
	}
	c.tools.block = nil
	req.Action = nil
	_, err = agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	if got := messages(c.state(t)); got != "m1 m2" {
		t.Errorf("messages are %q", got)
	}
}

// A server that does not react has its moment and no more.
func TestCancellingAServerThatDoesNotListen(t *testing.T) {
	hang := make(chan struct{})
	asked := make(chan struct{})
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.AgentFunc(func(context.Context, *agentrun.Turn) (agentrun.Step, error) {
		close(asked)
		<-hang
		return agentrun.Done{}, nil
	})})
	defer close(hang)
	c := newClient(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-asked; cancel() }()
	req := c.request(say("m1", "hello"))
	req.Grace = 10 * time.Millisecond
	_, err := agentrun.Run(ctx, agentrun.Connect(s.client), req)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
}

// What runs when the connection is lost goes on, and its result is used.
func TestALostConnectionDoesNotDisturbACall(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Shell: "make"}, {Say: "made"}})})
	c := newClient(t, nil)
	resumed := make(chan struct{})
	var once sync.Once
	c.tools.block = func(ctx context.Context, _ *agentv1.ExecServerMessage) error {
		s.breakAll()
		select {
		case <-resumed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	req := c.request(say("m1", "hello"))
	req.OnResume = func(int, error) { once.Do(func() { close(resumed) }) }
	result, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	steps := c.state(t).GetTurns()[0].GetAgentConversationTurn().GetSteps()
	if len(steps) != 2 || steps[0].GetToolCall().GetShellToolCall().GetResult().GetSuccess().GetStdout() != "ran make" || result.Resumed != 1 {
		t.Errorf("result %+v, steps %v", result, steps)
	}
	for id, n := range c.tools.counts() {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
}

// The client dies before the result of a call is noted: it is unknown what the
// call did, so it is not done again, and the agent is told.
func TestACallWithUnknownOutcomeIsNotRepeated(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted([]agentrun.Line{{Shell: "deploy"}, {Say: "hm"}})})
	c := newClient(t, nil)
	rows := &failing{Store: c.rows, bad: second("stet:exec:")}
	req := c.request(say("m1", "hello"))
	req.Ledger = agentrun.NewLedger(rows, "shop")
	if _, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req); !errors.Is(err, errDisk) {
		t.Fatalf("the run ended with %v", err)
	}
	c = c.reopen(t, c.rows, nil)
	_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), c.request(agentrun.Resume()))
	must(t, err)
	for id, n := range c.tools.counts() {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	steps := c.state(t).GetTurns()[0].GetAgentConversationTurn().GetSteps()
	told := steps[0].GetToolCall().GetShellToolCall().GetResult().GetSpawnError().GetError()
	if len(steps) != 2 || told != agentrun.ErrUnknownOutcome.Error() {
		t.Errorf("the agent was told %q in %v", told, steps)
	}
}

// The client is restarted at any frame. Calls that were executed are not executed
// again, and the conversation ends as if nothing had happened.
func TestARestartAtAnyFrameChangesNothing(t *testing.T) {
	want, s, _ := play(t, nil)
	most := s.passed()[0]
	for cut := 1; cut <= most; cut += max(1, most/testenv.Scale(24, most)) {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			s := listen(t, agentrun.ServeOptions{Agent: s.opts.Agent})
			s.cuts = []int{cut}
			c := newClient(t, nil)
			for process := 0; ; process++ {
				q := agentrun.NewQueue()
				for _, id := range []string{"m1", "m2"} {
					_, err := q.Add(message(id, "text of "+id))
					must(t, err)
				}
				req := c.request(nil)
				req.Queue, req.Attempts = q, -1
				if c.h.Latest() != nil {
					req.Action = agentrun.Resume()
				}
				_, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
				if err == nil {
					break
				}
				if !errors.Is(err, agentrun.ErrConnectionLost) || process > 2 {
					t.Fatal(err)
				}
				c = c.reopen(t, c.rows, nil)
			}
			same(t, []int{cut}, c, want)
		})
	}
}

func TestTheWorkspaceIsCapturedInStep(t *testing.T) {
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(
		[]agentrun.Line{{Edit: &agentrun.FileEdit{Path: "a.txt", Content: "one\n"}}, {Say: "done"}},
		[]agentrun.Line{{Edit: &agentrun.FileEdit{Path: "a.txt", Content: "two\n"}}},
	)})
	ctx := context.Background()
	c := newClient(t, nil)
	w, err := checkpoint.New(c.blobs, c.rows, &checkpoint.Options{Conversations: checkpoint.Of(c.store)}).Open(ctx, c.tools.dir)
	must(t, err)
	defer w.Close()
	atWork := func(when string, want int) {
		t.Helper()
		if open, err := w.AtWork(ctx); err != nil || len(open) != want {
			t.Errorf("%s: at work are %+v, %v; want %d", when, open, err, want)
		}
	}
	var files []*checkpoint.Result
	c.h, err = agentrun.NewHandler(ctx, c.blobs, c.conv, &agentrun.HandlerOptions{Workspace: w, Author: "agent", OnCheckpoint: func(_ context.Context, cp agentrun.Checkpoint) error {
		atWork("after a state of the turn", 1)
		if cp.Files != nil {
			files = append(files, cp.Files)
		}
		return nil
	}})
	must(t, err)
	for _, id := range []string{"m1", "m2"} {
		_, err := agentrun.Run(ctx, agentrun.Connect(s.client), c.request(say(id, "hello")))
		must(t, err)
		atWork("after the turn", 0)
	}
	if len(files) != 2 {
		t.Fatalf("%d checkpoints of the workspace, want one for each edit", len(files))
	}
	rec := files[1].Record
	if rec.Side != checkpoint.After || rec.MessageID != "m2" || rec.Turn != 2 || rec.FilesChanged != 1 {
		t.Errorf("the last one is %+v", rec)
	}
	// Back to before the second message: file and conversation together.
	plan, err := w.Plan(ctx, checkpoint.RewindRequest{To: files[0].Record.ID})
	must(t, err)
	_, err = w.Rewind(ctx, plan.Request(), plan.Token)
	must(t, err)
	data, err := os.ReadFile(filepath.Join(c.tools.dir, "a.txt"))
	must(t, err)
	if string(data) != "one\n" || messages(c.state(t)) != "m1" {
		t.Errorf("after the rewind the file holds %q and the messages are %q", data, messages(c.state(t)))
	}
}

func TestASilentServerIsGivenUp(t *testing.T) {
	hang := make(chan struct{})
	var first atomic.Bool
	s := listen(t, agentrun.ServeOptions{Heartbeat: time.Hour, Agent: agentrun.AgentFunc(func(ctx context.Context, turn *agentrun.Turn) (agentrun.Step, error) {
		if first.CompareAndSwap(false, true) {
			select {
			case <-hang:
			case <-ctx.Done():
			}
			return nil, ctx.Err()
		}
		return agentrun.Done{}, nil
	})})
	defer close(hang)
	c := newClient(t, nil)
	req := c.request(say("m1", "hello"))
	// On a busy machine a server that does answer may take as long, more than once.
	req.Silence, req.Attempts = 200*time.Millisecond, 1000
	result, err := agentrun.Run(context.Background(), agentrun.Connect(s.client), req)
	must(t, err)
	if result.Resumed < 1 {
		t.Errorf("result is %+v", result)
	}
}
