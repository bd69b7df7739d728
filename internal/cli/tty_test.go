//go:build linux

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// openTTY returns the two ends of a pseudo-terminal.
func openTTY(rows, cols uint16) (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	return master, slave, err
}

// scriptTTY is the command "tty DIALOGUE CODE CMD…": it runs CMD on a terminal of
// its own, which must end with CODE. A line "< text" of the dialogue waits until
// the terminal shows the text, a line "> text" types it, with Go's escapes, and a
// line "! TERM" sends a signal. What the terminal showed becomes stdout. It has
// $ROWS and $COLS, or 40 and 120.
func scriptTTY(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	master, slave, err := openTTY(numberOr(ts.Getenv("ROWS"), 40), numberOr(ts.Getenv("COLS"), 120))
	ts.Check(err)
	defer master.Close()
	cmd := exec.Command(path, args[3:]...)
	cmd.Args[0] = args[2]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "STET_STORE", "USER", "TZ", "TERM", "PATH", "NO_COLOR", "PAGER", "TESTSCRIPT_COMMAND", backgroundSetting} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	// Who started the tests may ignore hangups, as nohup does, and commands inherit
	// that; what is heard here they get as it is by default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	ts.Check(cmd.Start())
	ts.Check(slave.Close())
	shown, err := converse(master, ts.ReadFile(args[0]), cmd.Process)
	if err != nil {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait() // the exit code tells
	fmt.Fprint(ts.Stdout(), shown)
	ts.Check(err)
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func numberOr(text string, other uint16) uint16 {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return uint16(n)
	}
	return other
}

// converse plays a dialogue and reads the rest until the terminal is left.
func converse(master *os.File, dialogue string, process *os.Process) (string, error) {
	chunks := make(chan []byte)
	go func() {
		defer close(chunks)
		for {
			buf := make([]byte, 4096)
			n, err := master.Read(buf)
			if n > 0 {
				chunks <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	var shown bytes.Buffer
	seen := 0
	limit := time.After(time.Minute)
	wait := func(text string) error {
		for {
			if i := bytes.Index(shown.Bytes()[seen:], []byte(text)); text != "" && i >= 0 {
				seen += i + len(text)
				return nil
			}
			select {
			case chunk, ok := <-chunks:
				if !ok && text == "" {
					return nil
				}
				if !ok {
					return fmt.Errorf("the terminal never showed %q", text)
				}
				shown.Write(chunk)
			case <-limit:
				return fmt.Errorf("waited too long for %q", text)
			}
		}
	}
	for line := range strings.Lines(dialogue) {
		kind, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "<":
			if err := wait(text); err != nil {
				return shown.String(), err
			}
		case "!":
			if err := process.Signal(unix.SignalNum("SIG" + text)); err != nil {
				return shown.String(), err
			}
		case ">":
			keys, err := strconv.Unquote(`"` + text + `"`)
			if err != nil {
				return shown.String(), err
			}
			if _, err := master.WriteString(keys); err != nil {
				return shown.String(), err
			}
		}
	}
	err := wait("")
	return shown.String(), err
}
