package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/server"
)

func TestAConversationIsSavedAndAnAgentFollowed(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const token = "0123456789abcdef0123456789abcdef"
	handler, err := server.New(db, &server.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler) }()
	var out bytes.Buffer
	runErr := run(t.Context(), &out, "http://"+listener.Addr().String(), token)
	stop()
	if err := <-ended; err != nil || runErr != nil {
		t.Fatal(runErr, err)
	}
	if got, want := out.String(), "saved turn 1\nLooking at checkout\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// The page has the program as it is.
func TestThePageHasThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/embed/GO.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), "\npackage main\n")
	if !strings.Contains(string(page), "```go\npackage main\n"+code+"```\n") {
		t.Error("docs/embed/GO.md does not have main.go without its first comment")
	}
}
