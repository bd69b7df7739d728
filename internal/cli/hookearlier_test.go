package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/internal/osfile"
	"github.com/stet-dev/stet/internal/testenv"
)

// earlierAgent is Claude Code on a computer with sessions from before.
type earlierAgent struct {
	t                   *testing.T
	home, store, stamps string
}

func newEarlierAgent(t *testing.T) *earlierAgent {
	root := testenv.TempDir(t)
	g := &earlierAgent{t: t, home: filepath.Join(root, "home"), store: filepath.Join(root, "store")}
	g.stamps = filepath.Join(g.store+".hooks", "claude-code.earlier")
	for _, set := range [][2]string{{"HOME", g.home}, {"XDG_DATA_HOME", g.home}, {"XDG_CONFIG_HOME", g.home},
		{"STET_STORE", g.store}, {backgroundSetting, "true"}} {
		t.Setenv(set[0], set[1])
	}
	return g
}

// session writes a session that the agent would delete at its next cleanup.
func (g *earlierAgent) session(n int) (path string) {
	g.t.Helper()
	id := earlierID(n)
	path = filepath.Join(g.home, ".claude", "projects", "-ws", id+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		g.t.Fatal(err)
	}
	text := fmt.Sprintf(`{"type":"user","uuid":"u%[1]d","parentUuid":null,"promptId":"p%[1]d","message":{"role":"user","content":"prompt %[1]d"},"cwd":"/ws","sessionId":%[2]q,"timestamp":"2026-01-16T11:56:16.000Z"}
{"type":"assistant","uuid":"a%[1]d","parentUuid":"u%[1]d","message":{"id":"m%[1]d","role":"assistant","model":"m","content":[{"type":"text","text":"Done."}]},"sessionId":%[2]q,"timestamp":"2026-01-16T11:56:18.000Z"}
`, n, id)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	old := time.Now().AddDate(0, 0, -60)
	if err := os.Chtimes(path, old, old); err != nil {
		g.t.Fatal(err)
	}
	return path
}

func earlierID(n int) string { return fmt.Sprintf("%08d-1111-4111-8111-111111111111", n) }

// start runs the hook of the beginning of a session.
func (g *earlierAgent) start() {
	cmd := exec.Command("stet", "hook", "claude-code", "SessionStart")
	cmd.Stdin = strings.NewReader(`{"session_id":"33333333-1111-4111-8111-111111111111","cwd":"/ws","hook_event_name":"SessionStart","source":"startup"}`)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		g.t.Errorf("the hook: %v, it says %q", err, out)
	}
}

// wait waits for the process behind: the hook has given it its lock.
func (g *earlierAgent) wait() {
	g.t.Helper()
	lock, err := os.OpenFile(g.stamps+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		g.t.Fatal(err)
	}
	defer lock.Close()
	if err := osfile.Lock(lock); err != nil {
		g.t.Fatal(err)
	}
}

// copied looks for sessions in the store, each of which has one turn.
func (g *earlierAgent) copied(want ...int) {
	g.t.Helper()
	var got, list []string
	for _, n := range want {
		list = append(list, earlierID(n)+" 1 1")
	}
	err := g.app().withStore(context.Background(), true, func(db *stet.DB) error {
		page, err := db.Conversations().List(context.Background(), nil)
		for _, info := range page.Conversations {
			got = append(got, fmt.Sprint(info.ID, " ", info.Turns, " ", info.Save))
		}
		return err
	})
	slices.Sort(got)
	if err != nil || !slices.Equal(got, list) {
		g.t.Errorf("the store has %v, want %v, %v", got, list, err)
	}
}

func (g *earlierAgent) app() *app {
	return &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}, quiet: true, store: g.store}
}

func (g *earlierAgent) stamped() bool { return !readEarlier(g.stamps).Time.IsZero() }

func TestEarlierSessionsAreCopiedBeforeTheirAgentDeletesThem(t *testing.T) {
	g := newEarlierAgent(t)
	path := g.session(1)
	g.start()
	g.wait()
	g.copied(1)
	if err := os.Remove(path); err != nil { // as its cleanup does
		t.Fatal(err)
	}

	// Once a day is enough.
	g.session(2)
	g.start()
	g.wait()
	g.copied(1)
	for _, off := range []time.Duration{-earlierEvery, earlierEvery} { // also if the clock was wrong
		if err := g.app().noteEarlier("claude-code", func(e *earlierNote) { e.Time = now().Add(off) }); err != nil {
			t.Fatal(err)
		}
		g.start()
		g.wait()
	}
	g.copied(1, 2)
	if failed := g.app().hookFailures(time.Time{}); len(failed) > 0 {
		t.Errorf("failures: %v", failed)
	}
}

func TestEarlierSessionsAreCopiedByOneProcess(t *testing.T) {
	g := newEarlierAgent(t)
	g.session(1)
	if err := os.MkdirAll(filepath.Dir(g.stamps), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := osfile.OpenAlone(g.stamps + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	g.start() // while another process copies
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	g.wait()
	if g.stamped() {
		t.Error("two processes copied")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(g.start)
	}
	wg.Wait()
	g.wait()
	g.copied(1)
	if !g.stamped() {
		t.Error("it is not noted")
	}
}

// stopping is a context that ends when it was looked at a number of times.
type stopping struct {
	context.Context
	mu   sync.Mutex // guards left
	left int
	done chan struct{}
}

func (s *stopping) Done() <-chan struct{} { _ = s.Err(); return s.done }

func (s *stopping) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left == 0 {
		close(s.done)
	}
	if s.left <= 0 {
		return context.Canceled
	}
	return nil
}

func TestCopyOfEarlierSessionsGoesOnAfterACrash(t *testing.T) {
	g := newEarlierAgent(t)
	for n := range 3 {
		g.session(n)
	}
	for points := 1; ; points *= 2 {
		err := g.app().copyEarlier(&stopping{Context: context.Background(), left: points, done: make(chan struct{})}, "claude-code")
		if g.stamped() != (err == nil) {
			t.Fatalf("interrupted after %d points: %v, noted: %v", points, err, g.stamped())
		}
		if err == nil {
			break
		}
	}
	g.copied(0, 1, 2)

	// A process that is killed: wherever that hits it, the next session repeats the rest.
	g.session(3)
	if err := os.Remove(g.stamps); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("stet", "hook", "--earlier", "claude-code")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	g.start()
	g.wait()
	g.copied(0, 1, 2, 3)
}

func TestEarlierSessionsThatAreNotWanted(t *testing.T) {
	g := newEarlierAgent(t)
	path := g.session(1)
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("stet", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	for _, connect := range [][]string{{"connect", "claude-code", "-y", "--no-import"}, {"connect", "claude-code", "--no-import"}} {
		run(connect...)
		g.start()
		g.wait()
		g.copied()
		if err := os.Remove(g.stamps); err != nil {
			t.Fatal(err)
		}
	}
	project := filepath.Join(filepath.Dir(g.home), "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	run("-C", project, "connect", "claude-code", "--project", "-y")
	g.start()
	g.wait()
	g.copied()

	// Who imports all of them wants them. A part that cannot be read is reported once.
	run("import", "--from", "claude-code", "-y")
	g.copied(1)
	g.session(2)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "garbage")
	f.Close()
	for range 2 {
		if err := g.app().noteEarlier("claude-code", func(e *earlierNote) { e.Time = time.Time{} }); err != nil {
			t.Fatal(err)
		}
		g.start()
		g.wait()
	}
	g.copied(1, 2)
	if failed := g.app().hookFailures(time.Time{}); len(failed) != 1 || !strings.Contains(failed[0].Error, "1 part of earlier sessions cannot be read") {
		t.Errorf("failures: %v", failed)
	}
}
