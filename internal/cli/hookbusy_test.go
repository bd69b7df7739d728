//go:build linux

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/sqlite"
)

// hookBox is a workspace, a home and a store for hooks that run as processes.
type hookBox struct {
	t                *testing.T
	home, ws, store  string
	transcript, wait string
}

func newHookBox(t *testing.T) *hookBox {
	root := testenv.TempDir(t)
	b := &hookBox{t: t, home: filepath.Join(root, "home"), ws: filepath.Join(root, "ws"), store: filepath.Join(root, "store")}
	b.transcript, b.wait = filepath.Join(root, "none.jsonl"), "600000"
	for _, dir := range []string{b.home, b.ws} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.write("a.txt", "one")
	// Processes that hooks leave behind become children of this one, so that it can wait.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Skip(err)
	}
	return b
}

func (b *hookBox) write(name, content string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.ws, name), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *hookBox) run(in string, args ...string) (string, error) {
	cmd := exec.Command("stet", args...)
	cmd.Env = append(os.Environ(), "HOME="+b.home, "XDG_DATA_HOME="+b.home, "XDG_CONFIG_HOME="+b.home, "STET_STORE="+b.store,
		"STET_HOOK_WAIT_MS="+b.wait, backgroundSetting+"=false")
	cmd.Dir, cmd.Stdin = b.ws, strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// hook runs a hook, which must end with 0 and say nothing.
func (b *hookBox) hook(session, event string) {
	b.t.Helper()
	payload := fmt.Sprintf(`{"session_id":%q,"transcript_path":%q,"cwd":%q,"prompt_id":"p1","hook_event_name":%q,"prompt":"go"}`, session, b.transcript, b.ws, event)
	if out, err := b.run(payload, "hook", "claude-code", event); err != nil || out != "" {
		b.t.Errorf("%s %s: %v, it says %q", session, event, err, out)
	}
}

// wants runs a command whose output has a text.
func (b *hookBox) wants(text string, args ...string) {
	b.t.Helper()
	if out, err := b.run("", args...); err != nil || !strings.Contains(out, text) {
		b.t.Errorf("%v: %v, no %q in\n%s", args, err, text, out)
	}
}

// behind returns the processes that hooks left behind and that cannot end yet.
func (b *hookBox) behind() (pids []int) {
	b.t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) || !bytes.Contains(line, []byte(b.store)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			b.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 1 {
		b.t.Errorf("%d processes finish the event", len(pids))
	}
	return pids
}

// end waits until processes have ended.
func (b *hookBox) end(pids []int) {
	b.t.Helper()
	for _, pid := range pids {
		_, err := unix.Wait4(pid, nil, 0, nil)
		for errors.Is(err, unix.EINTR) {
			_, err = unix.Wait4(pid, nil, 0, nil)
		}
		if err != nil {
			b.t.Error(err)
		}
	}
}

// checkpoints counts those of a session.
func (b *hookBox) checkpoints(session string) (n int) {
	b.t.Helper()
	a := &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}, store: b.store}
	err := a.withStore(context.Background(), false, func(db *stet.DB) error {
		for _, err := range db.Checkpoints().ListConversation(context.Background(), session) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// A store that another process keeps for itself does not keep the agent. The checkpoint is
// taken when the store is free.
func TestHookDoesNotWaitForABusyStore(t *testing.T) {
	b := newHookBox(t)
	b.hook("first", "UserPromptSubmit")
	release, err := sqlite.Alone(b.store)
	if err != nil {
		t.Fatal(err)
	}
	b.wait = "1"
	b.write("a.txt", "two")
	b.hook("second", "UserPromptSubmit") // it would wait for as long as the store is kept
	pids := b.behind()
	if err := release(); err != nil {
		t.Fatal(err)
	}
	b.end(pids)
	if n := b.checkpoints("second"); n != 1 {
		t.Errorf("%d checkpoints", n)
	}
	b.wants("it finishes in the background", "status")
}

// Nor does a record that cannot be read because its file system, or a pipe, keeps readers.
func TestHookDoesNotWaitForARecord(t *testing.T) {
	b := newHookBox(t)
	b.hook("first", "UserPromptSubmit")
	if err := unix.Mkfifo(b.transcript, 0o600); err != nil {
		t.Skip(err)
	}
	b.wait = "1"
	b.hook("second", "UserPromptSubmit")
	pids := b.behind()
	free, err := os.OpenFile(b.transcript, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(b.transcript); err != nil {
		t.Fatal(err)
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	b.end(pids)
	// The process behind may come so late that it does not find the record, and reports
	// that, too.
	failures := (&app{store: b.store}).hookFailures(time.Time{})
	if !slices.ContainsFunc(failures, func(f hookFailure) bool { return strings.Contains(f.Error, "it finishes in the background") }) {
		t.Errorf("failures: %v", failures)
	}
}

// A full disk costs the checkpoint, not the event; status says so, and the next turn has
// its checkpoints.
func TestHookOfAFullStore(t *testing.T) {
	b := newHookBox(t)
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	if err := errors.Join(os.Mkdir(filepath.Join(mount, "store"), 0o700), os.Symlink(filepath.Join(mount, "store"), b.store)); err != nil {
		t.Fatal(err)
	}
	b.hook("first", "UserPromptSubmit")
	ballast := filepath.Join(mount, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 9<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	b.write("a.txt", "two")
	b.hook("second", "UserPromptSubmit")
	b.hook("second", "Stop")
	if n, _ := filepath.Glob(b.store + ".hooks/claude-code/second/00000001.jsonl"); len(n) != 1 {
		t.Error("the event is lost")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	a := &app{store: b.store}
	failures := a.hookFailures(time.Time{})
	if len(failures) == 0 || !strings.Contains(failures[0].Error, "full") && !strings.Contains(failures[0].Error, "no space") {
		t.Errorf("failures: %v", failures)
	}
	b.hook("third", "UserPromptSubmit")
	b.write("a.txt", "three")
	b.hook("third", "Stop")
	if n := b.checkpoints("third"); n != 2 {
		t.Errorf("%d checkpoints", n)
	}
	b.wants("failure", "status")
}
