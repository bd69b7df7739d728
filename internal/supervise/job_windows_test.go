package supervise

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/osfile"
)

// asCommand is the variable that makes the test program one of the commands.
const asCommand = "STET_TEST_COMMAND"

// TestMain lets the test program be a command that leaves another one running.
func TestMain(m *testing.M) {
	switch os.Getenv(asCommand) {
	case "":
		os.Exit(m.Run())
	case "left":
		beLeft()
	default:
		beCommand(os.Getenv(asCommand))
	}
}

// beLeft keeps the file "left" to itself until it is ended, or finds a file "end".
func beLeft() {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if _, err := osfile.OpenAlone("left"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	for {
		if _, err := os.Stat("end"); err == nil {
			os.Exit(0)
		}
		time.Sleep(time.Millisecond)
	}
}

// beCommand starts the other one and ends with 3, or stays.
func beCommand(what string) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	self, err := os.Executable()
	left := exec.Command(self)
	left.Env = append(os.Environ(), asCommand+"=left")
	var out *bufio.Reader
	if pipe, pipeErr := left.StdoutPipe(); pipeErr == nil {
		out = bufio.NewReader(pipe)
	}
	if err = errors.Join(err, left.Start()); err == nil {
		_, err = out.ReadString('\n')
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	switch what {
	case "ends":
		os.Exit(3)
	case "interrupted":
		<-interrupts
		os.Exit(5)
	default:
		select {}
	}
}

// command returns a command that is this program. Once it has started the other one it
// calls started.
func command(t *testing.T, what string, started func()) *Command {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := &calling{call: sync.OnceFunc(started)}
	return &Command{
		Path: self, Args: []string{self}, Dir: t.TempDir(), Env: append(os.Environ(), asCommand+"="+what),
		In: strings.NewReader(""), Out: out, Err: out, Beat: time.Hour,
	}
}

// calling calls a function when it was told that the other command has started.
type calling struct {
	buf  bytes.Buffer
	call func()
}

func (c *calling) Write(p []byte) (int, error) {
	c.buf.Write(p)
	if strings.Contains(c.buf.String(), "started") {
		c.call()
	}
	return len(p), nil
}

// freed waits until the other command has ended.
func freed(t *testing.T, cmd *Command) {
	t.Helper()
	err := osfile.Try(func() error {
		f, err := osfile.OpenAlone(filepath.Join(cmd.Dir, "left"))
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Errorf("the command that was left runs: %v", err)
	}
}

func TestJobEndsWithItsCommand(t *testing.T) {
	cmd := command(t, "ends", func() {})
	if code, err := cmd.RunGroup(t.Context(), 0, nil); err != nil || code != 3 {
		t.Errorf("code %d, %v\n%s", code, err, &cmd.Out.(*calling).buf)
	}
	freed(t, cmd)
}

// A command that ignores the request to end is killed, with all that it started.
func TestJobIsKilled(t *testing.T) {
	defer func(was time.Duration) { grace = was }(grace)
	grace = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	cmd := command(t, "stays", cancel)
	if code, err := cmd.RunGroup(ctx, 0, nil); !errors.Is(err, context.Canceled) || code == 0 {
		t.Errorf("code %d, %v; want a killed command", code, err)
	}
	freed(t, cmd)
}

// SIGTERM, which a console sends that is closed, ends the command and what it started.
func TestTerminationEndsTheJob(t *testing.T) {
	signals := make(chan os.Signal, 1)
	cmd := command(t, "stays", func() { signals <- syscall.SIGTERM })
	cmd.Signals, cmd.Watch = signals, cmd.Dir
	if code, err := cmd.Run(t.Context(), watching{}); err != nil || code != 143 {
		t.Errorf("code %d, %v; want 143", code, err)
	}
	freed(t, cmd)
}

// An interrupt reaches the command. Where there is no console to send it through, it ends the
// job.
func TestInterruptsReachTheCommand(t *testing.T) {
	signals := make(chan os.Signal, 1)
	cmd := command(t, "interrupted", func() { signals <- os.Interrupt })
	cmd.Signals, cmd.Watch = signals, cmd.Dir
	code, err := cmd.Run(t.Context(), watching{})
	if err != nil || !slices.Contains([]int{5, 130}, code) {
		t.Errorf("code %d, %v; want 5, that of the command, or 130", code, err)
	}
	t.Logf("code %d", code)
	if err := os.WriteFile(filepath.Join(cmd.Dir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	freed(t, cmd)
}

// What a command leaves running goes on, as on other systems.
func TestWhatIsLeftGoesOn(t *testing.T) {
	cmd := command(t, "ends", func() {})
	cmd.Watch = cmd.Dir
	if code, err := cmd.Run(t.Context(), watching{}); err != nil || code != 3 {
		t.Errorf("code %d, %v", code, err)
	}
	if f, err := osfile.OpenAlone(filepath.Join(cmd.Dir, "left")); !errors.Is(err, osfile.ErrInUse) {
		t.Errorf("the command that was left has ended: %v, %v", f, err)
	}
	if err := os.WriteFile(filepath.Join(cmd.Dir, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	freed(t, cmd)
}

func TestCommandsThatCannotBeStarted(t *testing.T) {
	cmd := command(t, "ends", func() {})
	cmd.Path = filepath.Join(cmd.Dir, "missing.exe")
	var start *StartError
	if _, err := cmd.RunGroup(t.Context(), 0, nil); !errors.As(err, &start) {
		t.Errorf("a program that is missing: %v", err)
	}
}
