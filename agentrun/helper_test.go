package agentrun_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/kv/memkv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// frames is a server's stream that counts frames in both directions and breaks
// before the given one.
type frames struct {
	agentrun.ServerStream
	mu    sync.Mutex
	count int
	cut   int // breaks before this frame, counted from 1; 0 never
	broke chan struct{}
}

var errCut = errors.New("cut")

func (f *frames) pass() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.cut > 0 && f.count >= f.cut {
		if f.count == f.cut {
			close(f.broke)
		}
		return errCut
	}
	return nil
}

// snap breaks the stream now: the server stops sending and receiving, whether or
// not a frame comes.
func (f *frames) snap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut == 0 || f.count < f.cut {
		f.cut = f.count
		close(f.broke)
	}
}

func (f *frames) Send(msg *agentv1.AgentServerMessage) error {
	if err := f.pass(); err != nil {
		return err
	}
	return f.ServerStream.Send(msg)
}

func (f *frames) Receive() (*agentv1.AgentClientMessage, error) {
	msg, err := f.ServerStream.Receive()
	if err != nil {
		return nil, err
	}
	return msg, f.pass()
}

// server is an AgentService over real HTTP/2 whose streams can be cut.
type server struct {
	client agentv1connect.AgentServiceClient
	opts   agentrun.ServeOptions

	mu      sync.Mutex // guards what follows
	cuts    []int      // for the streams to come, in order
	streams []*frames
}

// Run breaks the stream as a dying machine does: the client gets no more than a
// reset.
func (s *server) Run(ctx context.Context, stream *connect.BidiStream[agentv1.AgentClientMessage, agentv1.AgentServerMessage]) error {
	f := &frames{ServerStream: stream, broke: make(chan struct{})}
	s.mu.Lock()
	if len(s.cuts) > 0 {
		f.cut, s.cuts = s.cuts[0], s.cuts[1:]
	}
	s.streams = append(s.streams, f)
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-f.broke:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := agentrun.Serve(ctx, f, s.opts)
	select {
	case <-f.broke:
		panic(http.ErrAbortHandler)
	default:
		return agentrun.ConnectError(err)
	}
}

func listen(t testing.TB, opts agentrun.ServeOptions) *server {
	t.Helper()
	if opts.Now == nil { // equal runs give equal states
		opts.Now = func() time.Time { return time.UnixMilli(1000) }
	}
	s := &server{opts: opts}
	mux := http.NewServeMux()
	mux.Handle(agentv1connect.NewAgentServiceHandler(s))
	hs := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	hs.Protocols.SetUnencryptedHTTP2(true)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- hs.Serve(listener) }()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	s.client = agentv1connect.NewAgentServiceClient(&http.Client{Transport: transport}, "http://"+listener.Addr().String())
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		must(t, hs.Close())
		<-served
	})
	return s
}

// breakAll breaks the streams that are open, before their next frame.
func (s *server) breakAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.streams {
		f.snap()
	}
}

// passed returns the number of frames of all streams.
func (s *server) passed() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []int
	for _, f := range s.streams {
		f.mu.Lock()
		out = append(out, f.count)
		f.mu.Unlock()
	}
	return out
}

// client is a client with its store and its workspace.
type client struct {
	mem   *memblob.Store
	blobs blob.Store
	rows  *memkv.Store
	store *conversation.Store
	conv  *conversation.Conversation
	tools *tools
	h     *agentrun.Handler
}

func newClient(t testing.TB, opts *agentrun.HandlerOptions) *client {
	t.Helper()
	ctx := context.Background()
	c := &client{mem: memblob.New(), tools: &tools{dir: t.TempDir(), ran: make(map[string]int)}}
	c.blobs = blob.Checked(c.mem)
	c.rows = memkv.New(c.mem)
	clock := time.UnixMilli(0)
	c.store = conversation.New(c.blobs, c.rows, &conversation.Options{Now: func() time.Time { return clock }})
	var err error
	c.conv, err = c.store.Create(ctx, conversation.Info{ID: "shop"})
	must(t, err)
	c.h, err = agentrun.NewHandler(ctx, c.blobs, c.conv, opts)
	must(t, err)
	return c
}

func (c *client) request(action *agentv1.ConversationAction) agentrun.Request {
	return agentrun.Request{
		Handler: c.h, Action: action, Executor: c.tools, Ledger: agentrun.NewLedger(c.rows, "shop"),
		Backoff: time.Microsecond, MaxBackoff: time.Microsecond,
	}
}

// state returns the current state with all its parts.
func (c *client) state(t testing.TB) *agentv1.ConversationState {
	t.Helper()
	s, err := c.store.Hydrate(context.Background(), "shop", nil)
	must(t, err)
	inline, _, err := s.Inline()
	must(t, err)
	return inline
}

// root returns the id of the current state.
func (c *client) root(t testing.TB) blob.ID {
	t.Helper()
	id, err := c.store.Head(context.Background(), "shop")
	must(t, err)
	return id
}

// tools is an executor over a directory that counts what it executes.
type tools struct {
	dir   string
	mu    sync.Mutex // guards ran
	ran   map[string]int
	block func(ctx context.Context, req *agentv1.ExecServerMessage) error
}

func (x *tools) Execute(ctx context.Context, req *agentv1.ExecServerMessage, reply func(*agentv1.ExecClientMessage)) error {
	x.mu.Lock()
	x.ran[req.GetExecId()]++
	x.mu.Unlock()
	if x.block != nil {
		if err := x.block(ctx, req); err != nil {
			return err
		}
	}
	switch m := req.GetMessage().(type) {
	case *agentv1.ExecServerMessage_ShellArgs:
		success := &agentv1.ShellSuccess{Command: m.ShellArgs.GetCommand(), Stdout: "ran " + m.ShellArgs.GetCommand()}
		reply(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ShellResult{ShellResult: &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{Success: success}}}})
	case *agentv1.ExecServerMessage_ReadArgs:
		reply(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ReadResult{ReadResult: x.read(m.ReadArgs.GetPath())}})
	case *agentv1.ExecServerMessage_WriteArgs:
		if err := os.WriteFile(filepath.Join(x.dir, m.WriteArgs.GetPath()), []byte(m.WriteArgs.GetFileText()), 0o600); err != nil {
			return err
		}
		success := &agentv1.WriteSuccess{Path: m.WriteArgs.GetPath()}
		reply(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_WriteResult{WriteResult: &agentv1.WriteResult{Result: &agentv1.WriteResult_Success{Success: success}}}})
	default:
		return errors.New("no such tool")
	}
	return nil
}

func (x *tools) read(path string) *agentv1.ReadResult {
	data, err := os.ReadFile(filepath.Join(x.dir, path))
	if err != nil {
		return &agentv1.ReadResult{Result: &agentv1.ReadResult_FileNotFound{FileNotFound: &agentv1.ReadFileNotFound{Path: path}}}
	}
	return &agentv1.ReadResult{Result: &agentv1.ReadResult_Success{Success: &agentv1.ReadSuccess{Path: path, Output: &agentv1.ReadSuccess_Content{Content: string(data)}}}}
}

// counts returns how often each call was executed.
func (x *tools) counts() map[string]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make(map[string]int)
	for k, n := range x.ran {
		out[k] = n
	}
	return out
}

// say is a message with a fixed id.
func say(id, text string) *agentv1.ConversationAction {
	return &agentv1.ConversationAction{Action: &agentv1.ConversationAction_UserMessageAction{
		UserMessageAction: &agentv1.UserMessageAction{UserMessage: message(id, text)},
	}}
}

func message(id, text string) *agentv1.UserMessage {
	return &agentv1.UserMessage{MessageId: id, Text: text}
}

// messages returns the ids of the user's messages, in order.
func messages(s *agentv1.ConversationState) string {
	var ids []string
	for _, turn := range s.GetTurns() {
		if m := turn.GetAgentConversationTurn().GetUserMessage(); m != nil {
			ids = append(ids, m.GetMessageId())
		}
	}
	return strings.Join(ids, " ")
}

func equal(t testing.TB, what string, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Fatalf("%s differs:\n got %v\nwant %v", what, got, want)
	}
}
