package spool_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	entries, err := s.Turn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
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
	if before, err := s.Previous(context.Background()); err != nil || len(before) != 2 || before[1].Call != "c1" {
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
