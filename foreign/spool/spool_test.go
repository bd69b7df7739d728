package spool_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/spool"
)

var epoch = time.UnixMilli(1_700_000_000_000)

func add(t *testing.T, s *spool.Spool, kind foreign.EventKind, call string) {
	t.Helper()
	e := foreign.Event{Kind: kind, Call: &foreign.Call{ID: call, Tool: foreign.EditTool, Paths: []string{call + ".go"}}, Raw: []byte(`{"x":1}`)}
	if err := s.Add("Event", e, epoch); err != nil {
		t.Fatal(err)
	}
}

func calls(t *testing.T, s *spool.Spool) string {
	t.Helper()
	turn, err := s.Turn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range turn.Events {
		out = append(out, e.Call)
	}
	return strings.Join(out, " ")
}

func TestTurnHasTheEventsSinceItsStart(t *testing.T) {
	s := spool.Open(t.TempDir(), "agent", "session")
	if got := calls(t, s); got != "" || !s.Last().IsZero() {
		t.Errorf("an empty spool has %q", got)
	}
	add(t, s, foreign.ToolEnd, "a") // connected in the middle of a turn
	if got := calls(t, s); got != "a" {
		t.Errorf("got %q", got)
	}
	for _, turn := range []string{"b", "c", "d"} {
		add(t, s, foreign.TurnStart, turn)
		add(t, s, foreign.ToolEnd, turn+"1")
		if got := calls(t, s); got != turn+" "+turn+"1" {
			t.Errorf("turn %s: got %q", turn, got)
		}
	}
	if s.Last().IsZero() {
		t.Error("no time")
	}
	if before, err := s.Previous(context.Background()); err != nil || len(before.Events) != 2 || before.Events[1].Call != "c1" {
		t.Errorf("the turn before has %v, %v", before, err)
	}
}

func TestTornLineCostsOnlyItself(t *testing.T) {
	dir := t.TempDir()
	s := spool.Open(dir, "agent", "session")
	add(t, s, foreign.TurnStart, "a")
	files, _ := filepath.Glob(filepath.Join(dir, "agent/session/*.jsonl"))
	f, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("\n" + `{"time":"2026-`)
	f.Close()
	add(t, s, foreign.ToolEnd, "b")
	if got := calls(t, s); got != "a b" {
		t.Errorf("got %q", got)
	}
}

// Many processes append at once; here they are goroutines with files of their own.
func TestNoEventIsLost(t *testing.T) {
	dir := t.TempDir()
	add(t, spool.Open(dir, "agent", "session"), foreign.TurnStart, "start")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 50 {
				e := foreign.Event{Kind: foreign.ToolEnd, Call: &foreign.Call{ID: fmt.Sprint(i, "-", j)}}
				if err := spool.Open(dir, "agent", "session").Add("x", e, epoch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := strings.Fields(calls(t, spool.Open(dir, "agent", "session"))); len(got) != 1+20*50 {
		t.Errorf("%d events", len(got))
	}
}

func TestOddIdsStayInside(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"", "..", "../up", "a/b", "é", strings.Repeat("x", 300), ".hidden"} {
		s := spool.Open(dir, "agent", id)
		add(t, s, foreign.TurnStart, "a")
		if calls(t, s) != "a" {
			t.Errorf("%q", id)
		}
	}
	entries, _ := os.ReadDir(filepath.Join(dir, "agent"))
	if len(entries) != 7 {
		t.Errorf("%d directories", len(entries))
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	add(t, spool.Open(dir, "agent", "old"), foreign.TurnStart, "a")
	if err := spool.Prune(dir, time.Now().Add(-time.Hour)); err != nil || spool.LastOf(dir, "agent").IsZero() {
		t.Errorf("a recent session is gone: %v", err)
	}
	if err := spool.Prune(dir, time.Now().Add(time.Hour)); err != nil || !spool.LastOf(dir, "agent").IsZero() {
		t.Errorf("an old session stays: %v", err)
	}
}

// The same prompt within a moment is one turn; later, or after other events, it is another.
func TestStartReportedTwice(t *testing.T) {
	dir := t.TempDir()
	s := spool.Open(dir, "agent", "session")
	start := func(at time.Time) {
		t.Helper()
		if err := s.Add("Prompt", foreign.Event{Kind: foreign.TurnStart, Raw: []byte(`{"p": 1}`)}, at); err != nil {
			t.Fatal(err)
		}
	}
	turns := func() int {
		files, _ := filepath.Glob(filepath.Join(dir, "agent/session/*.jsonl"))
		return len(files)
	}
	start(epoch)
	start(epoch.Add(time.Second))
	if n := turns(); n != 1 {
		t.Errorf("%d turns", n)
	}
	start(epoch.Add(time.Minute))
	if n := turns(); n != 2 {
		t.Errorf("a minute later: %d turns", n)
	}
	add(t, s, foreign.ToolEnd, "a")
	start(epoch.Add(time.Minute))
	if got := calls(t, s); got != "" {
		t.Errorf("after a tool the turn has %q", got)
	}
}

func TestWorkThatIsNotRecorded(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	now := time.Now()
	for session, kinds := range map[string][]foreign.EventKind{
		"works":    {foreign.SessionStart, foreign.TurnStart, foreign.ToolStart},
		"lost":     {foreign.TurnStart, foreign.TurnEnd, foreign.ToolStart},
		"ended":    {foreign.TurnStart, foreign.TurnEnd},
		"idle":     {foreign.SessionStart},
		"recorded": {foreign.TurnStart, foreign.ToolStart},
	} {
		s := spool.Open(dir, "agent", session)
		for _, kind := range kinds {
			if err := s.Add("x", foreign.Event{Kind: kind, Session: session, Workspace: "/w"}, now); err != nil {
				t.Fatal(err)
			}
		}
		if turn, err := s.Turn(ctx); session == "recorded" && (err != nil || turn.SetRecorded(now) != nil) {
			t.Fatal(err)
		}
	}
	for since, want := range map[time.Time]string{now.Add(-time.Second): "ended lost works", now.Add(time.Second): "lost works"} {
		workers, err := spool.Unrecorded(ctx, dir, since, now)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range workers {
			got = append(got, w.Session)
			if len(w.Workspaces) != 1 || w.Workspaces[0] != "/w" {
				t.Errorf("%+v", w)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}
