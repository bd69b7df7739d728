// Package scenario tests a server from outside, as its users meet it: one scenario
// driven by every client, the verbs with a store on a server, and what must hold
// while servers are killed and connections fail.
package scenario

import (
	"context"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/internal/cli"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/server"
)

func TestMain(m *testing.M) {
	if serveAsChild() {
		return
	}
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Setenv("STET_COMPACT_BACKGROUND", "false") // commands leave nothing behind that runs
	goleak.VerifyTestMain(withServers{m})
}

// asCommand makes this binary the command line.
const asCommand = "STET_SCENARIO_COMMAND"

// withServers stops the databases and buckets that tests started.
type withServers struct{ m *testing.M }

func (w withServers) Run() int { return realservers.Run(w.m) }

const token = "0123456789abcdef0123456789abcdef"

// start serves a fresh store on a loopback port and returns its address.
func start(t testing.TB) (*stet.DB, string) {
	t.Helper()
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := server.New(db, &server.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db, "http://" + listener.Addr().String()
}

func dial(t testing.TB, address string) *client.Client {
	t.Helper()
	c, err := client.New(address, &client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
