package recorder_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/spool"
)

// add reports an event whose hook is killed before it is recorded.
func (f *fixture) add(session string, e foreign.Event) {
	f.t.Helper()
	e.Session, e.Workspace = session, f.dir
	if err := spool.Open(f.r.Spool, "silent", session).Add("x", e, time.Now()); err != nil {
		f.t.Fatal(err)
	}
}

// records counts the checkpoints of a session by side.
func (f *fixture) records(session string) map[checkpoint.Side]int {
	f.t.Helper()
	ctx := context.Background()
	space, err := f.service.Open(ctx, f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	defer space.Close()
	out := map[checkpoint.Side]int{}
	for rec, err := range space.List(ctx, nil) {
		if err != nil {
			f.t.Fatal(err)
		}
		if rec.Conversation == session {
			out[rec.Side]++
		}
	}
	return out
}

// A turn whose beginning was not recorded loses nothing to the turn of another agent:
// what its edit tools wrote is its work, and what else changed is nobody's.
func TestTurnWithoutBeginning(t *testing.T) {
	start := foreign.Event{Kind: foreign.TurnStart, Raw: []byte(`{"prompt":"a"}`)}
	for name, lose := range map[string]func(f *fixture){
		"the prompt was killed late":  func(f *fixture) { f.add("a", start) },
		"the prompt was killed early": func(f *fixture) { f.add("a", foreign.Event{Kind: foreign.ToolStart, Call: &foreign.Call{}}) },
		"a turn was before it": func(f *fixture) {
			f.prompt("a", "zero")
			f.stop("a")
			f.add("a", foreign.Event{Kind: foreign.ToolStart, Call: &foreign.Call{}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("main.go", "v0")
			f.prompt("b", "one")
			lose(f)
			f.write("shell.txt", "by a command of one of them")
			f.edit("b", "b.txt", "b")
			f.edit("a", "a.txt", "a")
			f.stop("b")
			f.stop("a")
			f.rewind("b", "c1")
			f.want("a.txt", "a")
			f.want("b.txt", "")
			f.want("shell.txt", "by a command of one of them")
			f.rewind("a", "c1")
			f.want("shell.txt", "by a command of one of them")
			if name != "a turn was before it" { // nothing says that a turn began, so that its file is nobody's
				f.want("a.txt", "")
			}
		})
	}
}

// An agent that is connected twice, or that ends a turn and its session at once, gets one
// checkpoint.
func TestEventsAtOnce(t *testing.T) {
	f := newFixture(t)
	f.write("main.go", "v0")
	start := foreign.Event{Kind: foreign.TurnStart, Prompt: "one", Raw: []byte(`{"prompt":"one"}`)}
	twice := func(events ...foreign.Event) {
		var wg sync.WaitGroup
		for _, e := range events {
			f.add("s", e)
		}
		for _, e := range events {
			e.Session, e.Workspace = "s", f.dir
			wg.Go(func() {
				if _, err := f.r.Record(context.Background(), e); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	twice(start, start)
	f.edit("s", "main.go", "v1")
	twice(foreign.Event{Kind: foreign.TurnEnd, Raw: []byte(`{"end":1}`)}, foreign.Event{Kind: foreign.SessionEnd, Raw: []byte(`{"end":2}`)})
	if got := f.records("s"); got[checkpoint.Before] != 1 || got[checkpoint.After] != 1 || got[checkpoint.NoSide] != 0 {
		t.Errorf("checkpoints by side: %v", got)
	}
	f.rewind("s", "before:turn:1")
	f.want("main.go", "v0")
}

// The end of a turn that is recorded after the next turn began does not end that, and what
// the turn left is its work all the same.
func TestLateEnd(t *testing.T) {
	f := newFixture(t)
	f.write("main.go", "v0")
	f.event("s", foreign.Event{Kind: foreign.TurnStart, Raw: []byte(`{"prompt":"one"}`)})
	f.edit("s", "edited.txt", "by an edit tool of the first turn")
	f.write("one.txt", "by a command of the first turn")
	end := foreign.Event{Kind: foreign.TurnEnd, Session: "s", Workspace: f.dir, Raw: []byte(`{"end":1}`)}
	f.add("s", end)
	f.event("s", foreign.Event{Kind: foreign.TurnStart, Raw: []byte(`{"prompt":"two"}`)})
	if out, err := f.r.Record(context.Background(), end); err != nil || out.Checkpoint != nil {
		t.Errorf("the end of the first turn made %+v, %v", out.Checkpoint, err)
	}
	f.write("two.txt", "by a command of the second turn")
	if out := f.stop("s"); out.Checkpoint == nil {
		t.Error("the second turn had ended")
	}
	f.rewind("s", "before:turn:2")
	f.want("one.txt", "by a command of the first turn")
	f.want("two.txt", "")
	f.rewind("s", "before:turn:1")
	f.want("edited.txt", "")
	f.want("one.txt", "")
}

// The end of a turn that was never recorded does not make what the user wrote in the
// meantime the turn's work.
func TestLostEnd(t *testing.T) {
	f := newFixture(t)
	f.write("main.go", "v0")
	f.event("s", foreign.Event{Kind: foreign.TurnStart, Raw: []byte(`{"prompt":"one"}`)})
	f.edit("s", "edited.txt", "by an edit tool of the first turn")
	end := foreign.Event{Kind: foreign.TurnEnd, Session: "s", Workspace: f.dir}
	if err := spool.Open(f.r.Spool, "silent", "s").Add("x", end, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	f.write("mine.txt", "by the user")
	f.event("s", foreign.Event{Kind: foreign.TurnStart, Raw: []byte(`{"prompt":"two"}`)})
	f.rewind("s", "before:turn:1")
	f.want("edited.txt", "")
	f.want("mine.txt", "by the user")
}
