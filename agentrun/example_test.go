package agentrun_test

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
	"github.com/stet-dev/stet/kv/memkv"
)

// serveScript serves an agent that plays a script and returns a client for it.
func serveScript(lines ...agentrun.Line) (agentv1connect.AgentServiceClient, func()) {
	mux := http.NewServeMux()
	mux.Handle(agentv1connect.NewAgentServiceHandler(agentrun.NewService(agentrun.ServeOptions{Agent: agentrun.NewScripted(lines)})))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := agentv1connect.NewAgentServiceClient(&http.Client{Transport: transport}, "http://"+listener.Addr().String())
	return client, func() {
		transport.CloseIdleConnections()
		server.Close()
		<-done
	}
}

func Example() {
	client, stop := serveScript(
		agentrun.Line{Say: "I run the tests."},
		agentrun.Line{Disconnect: true}, // the run is resumed behind it
		agentrun.Line{Shell: "go test ./..."},
		agentrun.Line{Say: "They pass."},
	)
	defer stop()

	ctx := context.Background()
	mem := memblob.New()
	blobs, rows := blob.Checked(mem), memkv.New(mem)
	conv, err := conversation.New(blobs, rows, nil).Create(ctx, conversation.Info{ID: "shop"})
	if err != nil {
		panic(err)
	}
	handler, err := agentrun.NewHandler(ctx, blobs, conv, nil)
	if err != nil {
		panic(err)
	}
	shell := agentrun.ExecutorFunc(func(_ context.Context, req *agentv1.ExecServerMessage, reply func(*agentv1.ExecClientMessage)) error {
		fmt.Println("$", req.GetShellArgs().GetCommand())
		success := &agentv1.ShellSuccess{Stdout: "ok"}
		reply(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ShellResult{
			ShellResult: &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{Success: success}},
		}})
		return nil
	})
	result, err := agentrun.Run(ctx, agentrun.Connect(client), agentrun.Request{
		Handler:  handler,
		Action:   agentrun.Say("does it work?"),
		Executor: shell,
		Ledger:   agentrun.NewLedger(rows, conv.ID()),
		OnUpdate: func(u *agentv1.InteractionUpdate) {
			if text := u.GetTextDelta(); text != nil {
				fmt.Println(text.GetText())
			}
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d turn on %d streams, %d turn saved\n", result.Turns, result.Streams, conv.Head().Turns)
	// Output:
	// I run the tests.
	// $ go test ./...
	// They pass.
	// 1 turn on 2 streams, 1 turn saved
}
