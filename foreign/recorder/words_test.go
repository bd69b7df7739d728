package recorder_test

import (
	"context"
	"iter"
	"strconv"
	"testing"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/recorder"
)

// late is an agent that writes its record when the test says so.
type late struct {
	silent
	turns []foreign.Turn
}

func (l *late) SessionAt(context.Context, foreign.Host, string) iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		if len(l.turns) > 0 {
			yield(foreign.Session{Agent: l.Name(), ID: "s", Path: "/record", Size: int64(len(l.turns))}, nil)
		}
	}
}

func (l *late) Sessions(ctx context.Context, h foreign.Host) iter.Seq2[foreign.Session, error] {
	return l.SessionAt(ctx, h, "")
}

func (l *late) Turns(_ context.Context, _ foreign.Session, from foreign.Mark) iter.Seq2[foreign.Turn, error] {
	return func(yield func(foreign.Turn, error) bool) {
		at, _ := strconv.Atoi(string(from))
		for i, t := range l.turns[at:] {
			t.Mark = foreign.Mark(strconv.Itoa(at + i))
			if t.Done {
				t.Mark = foreign.Mark(strconv.Itoa(at + i + 1))
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

func (*late) Files(context.Context, foreign.Session) iter.Seq2[foreign.File, error] {
	return func(func(foreign.File, error) bool) {}
}

// record adds a turn to the record.
func (l *late) record(id string, done bool, reply string) {
	turn := foreign.Turn{ID: id, Prompt: "prompt " + id, Done: done, Started: time.UnixMilli(1000), Steps: []foreign.Step{{Text: reply}}}
	if n := len(l.turns); n > 0 && l.turns[n-1].ID == id {
		l.turns[n-1] = turn
		return
	}
	l.turns = append(l.turns, turn)
}

func newLate(t *testing.T) (*fixture, *late) {
	f, agent := newFixture(t), &late{}
	f.r.Adapter = agent
	f.write("main.go", "v0")
	return f, agent
}

// after returns the checkpoint after a turn, which must be one.
func (f *fixture) after(turn uint64) *checkpoint.Record {
	f.t.Helper()
	var found *checkpoint.Record
	for rec, err := range f.service.ListConversation(context.Background(), "s") {
		if err != nil {
			f.t.Fatal(err)
		}
		if rec.Side == checkpoint.After && rec.Turn == turn {
			if found != nil {
				f.t.Fatalf("%s and %s are after turn %d", rec.Name(), found.Name(), turn)
			}
			found = rec
		}
	}
	if found == nil {
		f.t.Fatalf("no checkpoint is after turn %d", turn)
	}
	return found
}

// wantWords fails unless the checkpoint after a turn has the latest state of a message, or
// none if the message is "".
func (f *fixture) wantWords(turn uint64, message string) {
	f.t.Helper()
	rec := f.after(turn)
	var want conversation.Save
	for save, err := range conversation.New(f.r.Blobs, f.r.Rows, nil).History(context.Background(), "s", nil) {
		if err != nil {
			f.t.Fatal(err)
		}
		if save.MessageID == message && message != "" {
			want = save
		}
	}
	if rec.MessageID != message || message != "" && (want.Seq == 0 || rec.Root != want.Root) {
		f.t.Errorf("after turn %d: message %q and state %s, want %q and %s", turn, rec.MessageID, rec.Root.Short(), message, want.Root.Short())
	}
}

// words takes late words, as the process behind the agent does.
func (f *fixture) words() bool {
	f.t.Helper()
	all, err := f.r.Words(context.Background(), foreign.Event{Kind: foreign.TurnEnd, Session: "s", Workspace: f.dir})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

func (f *fixture) turn(name string) recorder.Outcome {
	f.t.Helper()
	f.prompt("s", name)
	f.edit("s", name, name)
	return f.stop("s")
}

// An agent that records a turn after it reported the end gets the words tied to the
// checkpoint, by the process behind it or by the next event.
func TestWordsThatComeLate(t *testing.T) {
	for name, next := range map[string]func(f *fixture){
		"behind the agent":   func(f *fixture) { f.words() },
		"end of the session": func(f *fixture) { f.event("s", foreign.Event{Kind: foreign.SessionEnd}) },
		"next prompt":        func(f *fixture) { f.prompt("s", "next") },
	} {
		t.Run(name, func(t *testing.T) {
			f, agent := newLate(t)
			for i, id := range []string{"m1", "m2"} {
				if out := f.turn(id); !out.Wordless {
					t.Fatal("the turn has words before they are recorded")
				}
				tree := f.after(uint64(i + 1)).Tree
				agent.record(id, true, "done")
				next(f)
				f.wantWords(uint64(i+1), id)
				if f.after(uint64(i+1)).Tree != tree {
					t.Error("the files changed")
				}
				if name == "next prompt" {
					return // the turn that it began is not ended here
				}
			}
		})
	}
}

// A process that was killed when it had copied the words leaves the rest to the next event.
func TestLateWordsAfterAKill(t *testing.T) {
	f, agent := newLate(t)
	f.turn("m1")
	agent.record("m1", true, "done")
	space := f.r.Space
	f.r.Space = func(context.Context, string) (*checkpoint.Workspace, error) { return nil, context.Canceled }
	if _, err := f.r.Words(context.Background(), foreign.Event{Session: "s", Workspace: f.dir}); err == nil {
		t.Fatal("no error")
	}
	f.r.Space = space
	f.wantWords(1, "")
	f.prompt("s", "m2")
	f.wantWords(1, "m1")
}

// A record that is read while it is written gives the whole turn in the end.
func TestLateWordsInParts(t *testing.T) {
	f, agent := newLate(t)
	f.turn("m1")
	if f.words() {
		t.Error("no words are all words")
	}
	agent.record("m1", false, "half")
	if f.words() {
		t.Error("half a turn is all words")
	}
	f.wantWords(1, "m1")
	agent.record("m1", true, "whole")
	if !f.words() {
		t.Error("the whole turn is not all words")
	}
	f.wantWords(1, "m1")
}

// Words that may be those of either of two turns are given to neither.
func TestLateWordsOfSeveralTurns(t *testing.T) {
	f, agent := newLate(t)
	f.turn("m1")
	f.prompt("s", "m2")
	agent.record("m1", true, "done")
	f.words()
	f.wantWords(1, "")
	agent.record("m2", true, "done")
	f.stop("s")
	for rec, err := range f.service.ListConversation(context.Background(), "s") {
		if err != nil || rec.Side == checkpoint.After && rec.MessageID == "m1" {
			t.Errorf("%s has the words of the first turn: %v", rec.Name(), err)
		}
	}
}

// An agent whose record is there at the end has nothing that is late.
func TestWordsInTime(t *testing.T) {
	f, agent := newLate(t)
	for i, id := range []string{"m1", "m2"} {
		f.prompt("s", id)
		agent.record(id, true, "done")
		if out := f.stop("s"); out.Wordless {
			t.Error("the turn has no words")
		}
		f.wantWords(uint64(i+1), id)
	}
}
