// Command openaiagent serves an agent that gets its next step from any endpoint with
// the chat completions protocol of OpenAI. Clients of agent.v1, such as package
// agentrun, run it; they keep the conversation and execute the tools.
//
//	OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=qwen3 openaiagent
//
// OPENAI_API_KEY is sent if it is set. The server listens only on loopback, because
// it has no authentication.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/agentrun/openai"
	"github.com/stet-dev/stet/gen/agent/v1/agentv1connect"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8787", "address on this machine")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "openaiagent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address string) error {
	agent := &openai.Agent{URL: os.Getenv("OPENAI_BASE_URL"), Key: os.Getenv("OPENAI_API_KEY"), Model: os.Getenv("OPENAI_MODEL")}
	if agent.URL == "" || agent.Model == "" {
		return errors.New("set OPENAI_BASE_URL and OPENAI_MODEL")
	}
	listener, err := listenLocally(address)
	if err != nil {
		return err
	}
	server := newServer(agent)
	ended := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer ended()
	fmt.Fprintln(os.Stderr, "openaiagent: listening on", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listenLocally rejects every address that other machines can reach.
func listenLocally(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%s is not a loopback address", host)
	}
	return net.Listen("tcp", address)
}

func newServer(agent agentrun.Agent) *http.Server {
	mux := http.NewServeMux()
	mux.Handle(agentv1connect.NewAgentServiceHandler(agentrun.NewService(agentrun.ServeOptions{Agent: agent})))
	server := &http.Server{
		Handler:           http.NewCrossOriginProtection().Handler(mux),
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: 10 * time.Second,
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true) // bidirectional streams need it
	return server
}
