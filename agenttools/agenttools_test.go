package agenttools_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stet-dev/stet/agenttools"
	"github.com/stet-dev/stet/checkpoint"
)

// worked is a workspace with two turns of session one and a running third.
func worked(t *testing.T) *fixture {
	f := newFixture(t)
	f.write("a.txt", "zero\n")
	f.begin("one", 1)
	f.write("a.txt", "first\n")
	f.end("one", 1, "make it first", "it is first now")
	f.begin("one", 2)
	f.write("a.txt", "second\n")
	f.write("b.txt", "new\n")
	f.end("one", 2, "make it second", "it is second now")
	f.begin("one", 3)
	f.write("a.txt", "third\n")
	return f
}

func TestHistory(t *testing.T) {
	ctx, f := context.Background(), worked(t)
	tools := f.tools("one")
	text, err := tools.History(ctx, agenttools.HistoryArgs{})
	said(t, text, err, "Calling session: `one` (claude-code), in turn 3", "Now: differs from c", "`a.txt`",
		`after turn 2 "make it second"`, "2 files", "opus-5 · 1.3k tokens", "first checkpoint")

	// A page ends with how to go on, and the next one goes on there.
	text, err = tools.History(ctx, agenttools.HistoryArgs{Limit: 1})
	said(t, text, err, "make it second", `before="c`)
	if strings.Contains(text, "make it first") {
		t.Errorf("one was asked for:\n%s", text)
	}
	text, err = tools.History(ctx, agenttools.HistoryArgs{Before: "c4"})
	said(t, text, err, "make it first")
	if strings.Contains(text, "make it second") || strings.Contains(text, "Calling session") {
		t.Errorf("not a continuation:\n%s", text)
	}

	// Another session sees whose work it was, or nothing of it.
	text, err = f.tools("two").History(ctx, agenttools.HistoryArgs{})
	said(t, text, err, "session `one`")
	text, err = f.tools("two").History(ctx, agenttools.HistoryArgs{Session: "own"})
	said(t, text, err, "No checkpoints")
	text, err = tools.History(ctx, agenttools.HistoryArgs{Before: "c99"})
	failed(t, text, err, "no checkpoint `c99`")
	text, err = tools.History(ctx, agenttools.HistoryArgs{Limit: 1000})
	failed(t, text, err, "limit must be from 1 to 100")
	text, err = f.tools("").History(ctx, agenttools.HistoryArgs{Session: "own"})
	failed(t, text, err, "which session is calling is not known")
}

func TestSearch(t *testing.T) {
	ctx, f := context.Background(), worked(t)
	text, err := f.tools("two").Search(ctx, agenttools.SearchArgs{Query: "second now"})
	said(t, text, err, "`one`", "turn 2", "> it is second now", "assistant")
	text, err = f.tools("one").Search(ctx, agenttools.SearchArgs{Query: "make", Limit: 1})
	said(t, text, err, "cursor=")
	cursor := text[strings.Index(text, `cursor="`)+len(`cursor="`):]
	text, err = f.tools("one").Search(ctx, agenttools.SearchArgs{Query: "make", Limit: 1, Cursor: cursor[:strings.IndexByte(cursor, '"')]})
	said(t, text, err, "`one`")
	text, err = f.tools("one").Search(ctx, agenttools.SearchArgs{Query: "neverwritten"})
	said(t, text, err, "Nothing found")
	text, err = f.tools("one").Search(ctx, agenttools.SearchArgs{Query: " "})
	failed(t, text, err, "no words")
	text, err = f.tools("one").Search(ctx, agenttools.SearchArgs{Query: "make", Cursor: "nonsense"})
	failed(t, text, err)
}

func TestShow(t *testing.T) {
	ctx, f := context.Background(), worked(t)
	tools := f.tools("one")
	text, err := tools.Show(ctx, agenttools.ShowArgs{Ref: "turn:2"})
	said(t, text, err, "Checkpoint `c4`", "make it second", "2 files changed", "modify `a.txt` +1 -1", "add `b.txt` +1", "`diff` with from=")
	text, err = tools.Show(ctx, agenttools.ShowArgs{Ref: "one"})
	said(t, text, err, "work of one", "## Turn 1 · ", "opus-5 · 1.3k tokens", "make it first", "it is second now")
	text, err = tools.Show(ctx, agenttools.ShowArgs{Ref: "own", Turn: 2})
	said(t, text, err, "## Turn 2", "turn=1")
	if strings.Contains(text, "## Turn 1 ") {
		t.Errorf("turn 2 was asked for:\n%s", text)
	}
	text, err = tools.Show(ctx, agenttools.ShowArgs{Ref: "own", Turn: 9})
	failed(t, text, err, "has 2 turns")
	text, err = tools.Show(ctx, agenttools.ShowArgs{Ref: "c77"})
	failed(t, text, err, "not found")
	text, err = tools.Show(ctx, agenttools.ShowArgs{Ref: "@"})
	failed(t, text, err, "`diff`")
	text, err = tools.Show(ctx, agenttools.ShowArgs{})
	failed(t, text, err, "ref is empty")
}

func TestShowOfLongTurns(t *testing.T) {
	ctx, f := context.Background(), newFixture(t)
	for turn := uint64(1); turn <= 20; turn++ {
		f.begin("one", turn)
		f.end("one", turn, fmt.Sprintf("prompt %d", turn), strings.Repeat("```x ", 4000))
	}
	text, err := f.tools("one").Show(ctx, agenttools.ShowArgs{Ref: "own", Turn: 3})
	said(t, text, err, "prompt 3", "turn=1", "Turns from ")
	if len(text) > 17<<10 {
		t.Errorf("the answer has %d bytes", len(text))
	}
}

func TestDiff(t *testing.T) {
	ctx, f := context.Background(), worked(t)
	tools := f.tools("one")
	text, err := tools.Diff(ctx, agenttools.DiffArgs{})
	said(t, text, err, "to the workspace now: 1 file changed", "-second", "+third")
	text, err = tools.Diff(ctx, agenttools.DiffArgs{From: "turn:1", To: "turn:2", Paths: []string{f.dir + "/b.txt"}})
	said(t, text, err, "1 file changed", "+new")
	text, err = tools.Diff(ctx, agenttools.DiffArgs{From: "turn:1", To: "turn:2", Stat: true})
	said(t, text, err, "2 files", "`b.txt` +1")
	text, err = tools.Diff(ctx, agenttools.DiffArgs{Paths: []string{"../etc"}})
	failed(t, text, err, "outside the workspace")
	text, err = tools.Diff(ctx, agenttools.DiffArgs{Paths: []string{"/etc"}})
	failed(t, text, err, "outside the workspace")

	for i := range 40 {
		f.write(fmt.Sprintf("many/%02d.txt", i), strings.Repeat("a line of text\n", 60))
	}
	text, err = tools.Diff(ctx, agenttools.DiffArgs{})
	said(t, text, err, "left out: ", "`diff` with paths shows them")
	if len(text) > 17<<10 {
		t.Errorf("the answer has %d bytes", len(text))
	}
}

func TestLookingStoresNothing(t *testing.T) {
	ctx, f := context.Background(), worked(t)
	f.write("secret.txt", "never stored\n")
	count := func() (n int) {
		f.do(func(ctx context.Context, p *agenttools.Place) error {
			for rec, err := range p.Space.List(ctx, nil) {
				if err != nil || rec == nil {
					return err
				}
				n++
			}
			return nil
		})
		return n
	}
	before, tools := count(), f.tools("one")
	for _, look := range []func() (string, error){
		func() (string, error) { return tools.History(ctx, agenttools.HistoryArgs{}) },
		func() (string, error) { return tools.Diff(ctx, agenttools.DiffArgs{}) },
		func() (string, error) { return tools.RewindPreview(ctx, agenttools.PreviewArgs{}) },
	} {
		text, err := look()
		said(t, text, err)
	}
	if after := count(); after != before {
		t.Errorf("%d checkpoints, %d before", after, before)
	}
}

func TestCheckpoint(t *testing.T) {
	ctx, f := context.Background(), worked(t)
	tools := f.tools("one")
	text, err := tools.Checkpoint(ctx, agenttools.CheckpointArgs{Label: "before the refactoring"})
	said(t, text, err, "Saved as `c6`: 1 file changed", `to="c6"`)
	f.write("a.txt", "broken\n")
	text, err = tools.RewindPreview(ctx, agenttools.PreviewArgs{To: "c6"})
	said(t, text, err, "before the refactoring", "restore `a.txt`", "calling session only")
	text, err = tools.Rewind(ctx, agenttools.RewindArgs{Token: tokenOf(t, text)})
	said(t, text, err, "Rewound 1 file: `a.txt`")
	if got := f.files()["a.txt"]; got != "third\n" {
		t.Errorf("a.txt has %q", got)
	}

	// The turn goes on: what follows is still its work.
	f.write("c.txt", "more\n")
	text, err = tools.RewindPreview(ctx, agenttools.PreviewArgs{})
	said(t, text, err, "delete `c.txt`", "restore `a.txt`")

	// A session without a running turn claims nothing.
	text, err = f.tools("two").Checkpoint(ctx, agenttools.CheckpointArgs{})
	said(t, text, err, "is not told about the turns of this session")
}

func TestStoreThatIsNotThere(t *testing.T) {
	ctx, f := context.Background(), newFixture(t)
	tools := f.tools("one")
	text, err := tools.History(ctx, agenttools.HistoryArgs{})
	failed(t, text, err, "no store")
	if _, err := os.Stat(f.store); err == nil {
		t.Error("looking made a store")
	}
	text, err = tools.Undo(ctx, agenttools.UndoArgs{})
	failed(t, text, err, "no store")
	text, err = tools.Checkpoint(ctx, agenttools.CheckpointArgs{})
	said(t, text, err, "Saved as `c1`")
	text, err = tools.History(ctx, agenttools.HistoryArgs{})
	said(t, text, err, "`c1`")
}

func TestWorkspaceWithoutCheckpoints(t *testing.T) {
	ctx, f := context.Background(), newFixture(t)
	f.do(func(context.Context, *agenttools.Place) error { return nil })
	tools := f.tools("one")
	text, err := tools.History(ctx, agenttools.HistoryArgs{})
	said(t, text, err, "No checkpoints")
	text, err = tools.Search(ctx, agenttools.SearchArgs{Query: "x"})
	said(t, text, err, "Nothing found")
	text, err = tools.Diff(ctx, agenttools.DiffArgs{})
	failed(t, text, err, "no checkpoint to compare with")
	text, err = tools.RewindPreview(ctx, agenttools.PreviewArgs{To: "c1"})
	failed(t, text, err, "nothing of session `one` is recorded")
	text, err = tools.Undo(ctx, agenttools.UndoArgs{})
	failed(t, text, err, "no rewind to undo")
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	text, err = tools.History(ctx, agenttools.HistoryArgs{})
	failed(t, text, err, "no such file or directory")
}

func TestAPanicIsAnAnswer(t *testing.T) {
	tools := agenttools.New(func(context.Context, bool, func(*agenttools.Place) error) error { panic("on purpose") }, nil)
	for range 2 { // the second call does not wait for the first
		text, err := tools.History(context.Background(), agenttools.HistoryArgs{})
		failed(t, text, err, "on purpose")
	}
}

func TestTheRunningTurnOfTheAgentIsTheCaller(t *testing.T) {
	ctx, f := context.Background(), newFixture(t)
	self, ok := checkpoint.ProcessOf(os.Getpid(), "agent")
	if !ok {
		t.Skip("processes cannot be identified here")
	}
	f.write("a.txt", "zero\n")
	f.begin("old", 1)
	f.end("old", 1, "x", "y")
	f.begin("new", 1, self)
	self.Command = ""
	tools := agenttools.New(f.open, &agenttools.Options{Started: "old", Agent: self})
	text, err := tools.History(ctx, agenttools.HistoryArgs{})
	said(t, text, err, "Calling session: `new` (claude-code), in turn 1")

	// With two turns of one process nobody can tell; what the agent said at the start counts.
	f.begin("newer", 1, self)
	text, err = tools.History(ctx, agenttools.HistoryArgs{})
	said(t, text, err, "Calling session: `old` (claude-code)\n")
}
