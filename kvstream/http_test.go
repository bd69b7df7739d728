package kvstream_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/kvstream"
)

// agentServer is an AgentService whose runs hand their store to the test. The
// key-value messages share the stream with others.
type agentServer struct {
	addr   string
	opts   *kvstream.Options
	stores chan *kvstream.Store
}

func (a *agentServer) Run(_ context.Context, stream *connect.BidiStream[agentv1.AgentClientMessage, agentv1.AgentServerMessage]) error {
	out := kvstream.Locked[agentv1.AgentServerMessage](stream)
	store := kvstream.New(kvstream.ServerFrames(out), a.opts)
	defer func() { <-store.Done() }()
	for {
		msg, err := stream.Receive()
		if err != nil {
			store.CloseWithError(err)
			return nil
		}
		switch frame := msg.GetMessage().(type) {
		case *agentv1.AgentClientMessage_RunRequest:
			a.stores <- store
		case *agentv1.AgentClientMessage_ClientHeartbeat: // a frame that is not ours, both ways
			if err := out.Send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{}}); err != nil {
				store.CloseWithError(err)
				return err
			}
		case *agentv1.AgentClientMessage_KvClientMessage:
			store.Deliver(frame.KvClientMessage)
		}
	}
}

func listenAgents(t testing.TB, opts *kvstream.Options) *agentServer {
	t.Helper()
	a := &agentServer{opts: opts, stores: make(chan *kvstream.Store, 1)}
	mux := http.NewServeMux()
	mux.Handle(agentv1connect.NewAgentServiceHandler(a))
	server := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	a.addr = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		must(t, server.Close())
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve HTTP: %v", err)
		}
	})
	return a
}

// run is a client that serves local over a real HTTP/2 connection to addr.
type run struct {
	*kvstream.Store // the server's
	finish          func()
	ended           chan struct{} // closed when err is set
	err             error         // how the client saw the stream end
}

func (a *agentServer) run(t testing.TB, addr string, local blob.Store, serve *kvstream.ServeOptions) *run {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := agentv1connect.NewAgentServiceClient(&http.Client{Transport: transport}, "http://"+addr,
		connect.WithAcceptCompression("gzip", nil, nil)) // random contents would only cost time
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := client.Run(ctx)
	must(t, err)
	must(t, stream.Send(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_RunRequest{}}))
	r := &run{ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = serveRun(ctx, stream, local, serve)
	}()
	r.finish = sync.OnceFunc(func() {
		_ = stream.CloseRequest() // a stream that was cut cannot be closed, and need not
		<-r.ended
		cancel()
		_ = stream.CloseResponse()
		transport.CloseIdleConnections()
	})
	t.Cleanup(r.finish)
	select {
	case r.Store = <-a.stores:
	case <-r.ended:
		t.Fatalf("run ended at its beginning: %v", r.err)
	}
	return r
}

// serveRun is what a client does with the frames of a run.
func serveRun(ctx context.Context, stream *connect.BidiStreamForClientSimple[agentv1.AgentClientMessage, agentv1.AgentServerMessage], local blob.Store, serve *kvstream.ServeOptions) error {
	out := kvstream.Locked[agentv1.AgentClientMessage](stream)
	responder := kvstream.NewResponder(kvstream.ClientFrames(out), local, serve)
	for beats := 0; ; beats++ {
		msg, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return responder.Close()
		}
		if err != nil {
			return errors.Join(err, responder.Close())
		}
		if kv := msg.GetKvServerMessage(); kv != nil {
			if err := responder.Handle(ctx, kv); err != nil {
				return errors.Join(err, responder.Close())
			}
			if beats%64 == 0 {
				if err := out.Send(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ClientHeartbeat{}}); err != nil {
					return errors.Join(err, responder.Close())
				}
			}
		}
	}
}
