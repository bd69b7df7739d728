package agenttools_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stet-dev/stet/agenttools"
)

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

func call(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`+"\n", id, tool)
}

// served is a server whose calls are those of open.
type served struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Scanner
	stop context.CancelFunc
	done chan error
}

func serve(t *testing.T, open agenttools.Opener) *served {
	ctx, stop := context.WithCancel(t.Context())
	in, send := io.Pipe()
	receive, out := io.Pipe()
	s := &served{t: t, in: send, out: bufio.NewScanner(receive), stop: stop, done: make(chan error, 1)}
	go func() {
		s.done <- agenttools.New(open, nil).Serve(ctx, in, out)
		_ = out.Close()
	}()
	t.Cleanup(func() { stop(); _ = send.Close(); _ = receive.Close() })
	s.say(hello)
	if m := s.hear(); m["id"] != "hello" {
		t.Fatalf("answer %v", m)
	}
	return s
}

func (s *served) say(lines string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, lines); err != nil {
		s.t.Fatal(err)
	}
}

// hear returns the next message, nil at the end.
func (s *served) hear() map[string]any {
	s.t.Helper()
	if !s.out.Scan() {
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(s.out.Bytes(), &m); err != nil {
		s.t.Fatal(err)
	}
	return m
}

func TestCallsAreAnsweredAfterTheInputEnded(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(ctx context.Context, _ bool, _ func(*agenttools.Place) error) error {
		close(running)
		<-release
		return errors.Join(errors.New("answered late"), ctx.Err())
	})
	s.say(call(1, "history"))
	<-running
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	close(release)
	m := s.hear()
	text, _ := json.Marshal(m["result"])
	if m["id"] != 1.0 || !strings.Contains(string(text), "answered late") || strings.Contains(string(text), "cancel") {
		t.Errorf("answer %v", m)
	}
	if err := <-s.done; err != nil {
		t.Errorf("the end of the input is an error: %v", err)
	}
}

func TestTheEndOfTheContextCancelsCalls(t *testing.T) {
	running, cancelled := make(chan struct{}), make(chan struct{})
	s := serve(t, func(ctx context.Context, _ bool, _ func(*agenttools.Place) error) error {
		close(running)
		<-ctx.Done()
		close(cancelled)
		return ctx.Err()
	})
	s.say(call(1, "undo"))
	<-running
	s.stop()
	<-cancelled
	for s.hear() != nil { // its answer may come
	}
	if err := <-s.done; !errors.Is(err, context.Canceled) {
		t.Errorf("serve: %v", err)
	}
}

func TestACallCanBeCancelled(t *testing.T) {
	running := make(chan struct{}, 2)
	s := serve(t, func(ctx context.Context, _ bool, _ func(*agenttools.Place) error) error {
		running <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	s.say(call(1, "history"))
	<-running
	s.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n")
	s.say(call(2, "history")) // waits for the first
	<-running
	s.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}` + "\n")
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	for s.hear() != nil {
	}
	if err := <-s.done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestCallsDoNotOverlap(t *testing.T) {
	var now atomic.Int32
	s := serve(t, func(context.Context, bool, func(*agenttools.Place) error) error {
		if now.Add(1) > 1 {
			t.Error("two calls at once")
		}
		defer now.Add(-1)
		return errors.New("done")
	})
	const calls = 20
	go func() {
		for i := range calls {
			_, _ = io.WriteString(s.in, call(i, "history"))
		}
		_ = s.in.Close()
	}()
	for range calls {
		if m := s.hear(); m == nil || m["error"] != nil {
			t.Fatalf("answer %v", m)
		}
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

// A subscription is open as long as the connection: it does not keep the server.
func TestASubscriptionEndsWithTheInput(t *testing.T) {
	s := serve(t, nil)
	s.say(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n")
	go func() {
		for s.hear() != nil {
		}
	}()
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}
