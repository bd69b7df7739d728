package scenario

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/server"
)

// childStore names the store that this binary serves instead of testing.
const childStore = "STET_SCENARIO_STORE"

// serveAsChild serves if this process was started to do so, until it is killed or
// its parent is gone.
func serveAsChild() bool {
	dir := os.Getenv(childStore)
	if dir == "" {
		return false
	}
	if err := serveStore(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func serveStore(dir string) error {
	db, err := stet.Open(context.Background(), dir, nil)
	if err != nil {
		return err
	}
	handler, err := server.New(db, &server.Options{Token: token})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println(listener.Addr())
	return server.Serve(ctx, listener, handler)
}

// child is a server in a process of its own.
type child struct {
	address string
	cmd     *exec.Cmd
	stdin   io.Closer
}

// spawn starts a server on a store and waits until it listens.
func spawn(t testing.TB, dir string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childStore+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	return &child{address: "http://" + strings.TrimSpace(line), cmd: cmd, stdin: stdin}
}

// kill ends the process as a power switch would, and returns when it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // SIGKILL; it may be gone already
	_ = c.stdin.Close()
	_ = c.cmd.Wait() // says that it was killed
}
