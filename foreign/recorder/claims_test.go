package recorder_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
)

// No hook reports that someone interrupted a turn. If the session ends without the end of its
// turn, what the user wrote meanwhile is not the turn's work.
func TestSessionThatEndsAfterAnInterruption(t *testing.T) {
	f := newFixture(t)
	f.write("main.go", "v0")
	f.prompt("s", "one")
	f.edit("s", "main.go", "v1")
	f.write("whose.txt", "by a command of the turn, or by the user")
	f.event("s", foreign.Event{Kind: foreign.SessionEnd})
	f.atWork("s", false)
	f.prompt("t", "another session")
	f.stop("t")
	f.rewind("s", "before:turn:1")
	f.want("main.go", "v0")
	f.want("whose.txt", "by a command of the turn, or by the user")
}

// A background task keeps a turn open after its answer. What the user writes then is not the
// turn's work when the next turn begins, or when the session ends.
func TestUserWritesBesideABackgroundTask(t *testing.T) {
	for name, next := range map[string]foreign.Event{
		"prompt":  {Kind: foreign.TurnStart, Prompt: "two", Raw: []byte(`{"prompt":"two"}`)},
		"session": {Kind: foreign.SessionEnd},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("main.go", "v0")
			f.prompt("s", "one")
			f.write("shell.txt", "by a command of the turn")
			f.event("s", foreign.Event{Kind: foreign.TurnEnd, Background: 1})
			f.write("mine.txt", "by the user")
			f.event("s", next)
			f.rewind("s", "before:turn:1")
			f.want("shell.txt", "")
			f.want("mine.txt", "by the user")
		})
	}
}

// An edit that failed wrote nothing.
func TestAFailedEditClaimsNothing(t *testing.T) {
	f := newFixture(t)
	f.write("mine.txt", "v0")
	f.prompt("s", "one")
	f.edit("s", "a.txt", "a")
	f.write("mine.txt", "by the user")
	f.event("s", foreign.Event{Kind: foreign.ToolEnd, Call: &foreign.Call{
		Tool: foreign.EditTool, Paths: []string{filepath.Join(f.dir, "mine.txt")}, Answered: true, Failed: true,
	}})
	f.prompt("s", "two") // the first turn was interrupted
	f.rewind("s", "before:turn:1")
	f.want("a.txt", "")
	f.want("mine.txt", "by the user")
}

// An agent that reached the workspace through a link names its files by that way.
func TestEditsThroughALink(t *testing.T) {
	f := newFixture(t)
	where := f.dir
	f.write("main.go", "v0")
	f.dir = filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(where, f.dir); err != nil {
		t.Skip(err)
	}
	f.prompt("s", "one")
	f.edit("s", "main.go", "v1")
	f.edit("s", "new.txt", "new")
	f.write("whose.txt", "by the user")
	f.prompt("s", "two") // the first turn was interrupted
	f.rewind("s", "before:turn:1")
	f.want("main.go", "v0")
	f.want("new.txt", "")
	f.want("whose.txt", "by the user")
}

// A turn that goes on after its end, because another hook asked for more, has what it did
// then, too.
func TestATurnThatGoesOn(t *testing.T) {
	f := newFixture(t)
	f.write("main.go", "v0")
	f.prompt("s", "one")
	f.edit("s", "main.go", "v1")
	f.stop("s")
	f.write("shell.txt", "by a command of the turn")
	f.edit("s", "more.txt", "more")
	out := f.event("s", foreign.Event{Kind: foreign.TurnEnd, Continued: true})
	if out.Checkpoint == nil || out.Checkpoint.Side != checkpoint.After || out.Checkpoint.Turn != 1 {
		t.Errorf("the second end made %+v", out.Checkpoint)
	}
	f.write("mine.txt", "by the user")
	f.rewind("s", "before:turn:1")
	f.want("main.go", "v0")
	f.want("shell.txt", "")
	f.want("more.txt", "")
	f.want("mine.txt", "by the user")
}

// told is an agent whose record says how turns ended.
type told struct{ early }

func (t told) SessionAt(ctx context.Context, h foreign.Host, _ string) iter.Seq2[foreign.Session, error] {
	return t.Sessions(ctx, h)
}

func (told) Event(string, []byte) (foreign.Event, error) {
	return foreign.Event{Kind: foreign.TurnStart, Transcript: "record"}, nil
}

// A turn that the record calls interrupted ends with what its edit tools wrote. Whoever looked
// before the session went on ends nothing of the next turn.
func TestSettle(t *testing.T) {
	ctx := context.Background()
	begin := func(f *fixture, turn string) {
		f.event("s", foreign.Event{Kind: foreign.TurnStart, Turn: turn, Raw: []byte(`{"turn":"` + turn + `"}`)})
	}
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			f := newFixture(t)
			f.write("main.go", "v0")
			f.r.Adapter = told{}
			begin(f, "t1")
			f.edit("s", "main.go", "v1")
			f.write("whose.txt", "by a command of the turn, or by the user")
			space, err := f.service.Open(ctx, f.dir)
			if err != nil {
				t.Fatal(err)
			}
			defer space.Close()
			open, err := space.AtWork(ctx)
			if err != nil || len(open) != 1 {
				t.Fatalf("at work: %v, %v", open, err)
			}
			f.r.Adapter = told{early{turns: []foreign.Turn{{ID: "t1", Prompt: "one", Interrupted: true}}}}
			if late {
				begin(f, "t2")
				f.write("shell.txt", "by a command of the second turn")
			}
			if err := f.r.Settle(ctx, space, open[0]); err != nil {
				t.Error(err)
			}
			f.atWork("s", late)
			if late {
				f.stop("s")
				f.rewind("s", "before:turn:2")
				f.want("shell.txt", "")
			}
			f.rewind("s", "before:turn:1")
			f.want("main.go", "v0")
			f.want("whose.txt", "by a command of the turn, or by the user")
		})
	}
}
