package agenttools_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stet-dev/stet/agenttools"
	"github.com/stet-dev/stet/checkpoint"
)

// shared is a workspace in which sessions one and two and the user changed files: one
// ended a turn and is in its second, two ended one between them.
func shared(t *testing.T) *fixture {
	f := newFixture(t)
	f.write("one.txt", "zero\n")
	f.write("two.txt", "zero\n")
	f.write("user.txt", "zero\n")
	f.write("gone.txt", "zero\n")
	f.begin("one", 1)
	f.write("one.txt", "first\n")
	f.end("one", 1, "first", "done")
	f.begin("two", 1)
	f.write("two.txt", "of two\n")
	f.write("two-new.txt", "of two\n")
	f.end("two", 1, "other work", "done")
	f.write("user.txt", "of the user\n")
	f.write("user-new.txt", "of the user\n")
	f.begin("one", 2)
	f.write("one.txt", "second\n")
	f.write("one-new.txt", "made\n")
	f.remove("gone.txt")
	return f
}

func TestRewindTakesBackOwnWorkOnly(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	tools, before := f.tools("one"), f.files()
	text, err := tools.RewindPreview(ctx, agenttools.PreviewArgs{To: "before:turn:1"})
	said(t, text, err, "restore `one.txt`", "delete `one-new.txt`", "create `gone.txt`", "calling session only",
		"`two.txt`", "of other conversations", "`user.txt`", `"yours" mean the user`)
	text, err = tools.Rewind(ctx, agenttools.RewindArgs{Token: tokenOf(t, text)})
	said(t, text, err, "Rewound 3 files", "Left as they are", "saved as `c")
	want := map[string]string{
		"one.txt": "zero\n", "gone.txt": "zero\n", "two.txt": "of two\n", "two-new.txt": "of two\n",
		"user.txt": "of the user\n", "user-new.txt": "of the user\n",
	}
	if got := f.files(); !maps.Equal(got, want) {
		t.Errorf("after the rewind: %q, want %q", got, want)
	}
	text, err = tools.Undo(ctx, agenttools.UndoArgs{})
	said(t, text, err, "restored 3 files")
	if got := f.files(); !maps.Equal(got, before) {
		t.Errorf("after the undo: %q, want %q", got, before)
	}
	text, err = tools.Undo(ctx, agenttools.UndoArgs{})
	failed(t, text, err, "no rewind to undo")
}

func TestRewindGoesToTheBeginningOfTheTurn(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	tools := f.tools("one")
	text, err := tools.RewindPreview(ctx, agenttools.PreviewArgs{Paths: []string{"one.txt"}})
	said(t, text, err, "before turn 2", "restore `one.txt`")
	text, err = tools.Rewind(ctx, agenttools.RewindArgs{Token: tokenOf(t, text)})
	said(t, text, err, "Rewound 1 file")
	if got := f.files(); got["one.txt"] != "first\n" || got["one-new.txt"] == "" {
		t.Errorf("one path was asked for: %q", got)
	}
}

func TestRewindOfMore(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	tools := f.tools("one")

	text, err := tools.RewindPreview(ctx, agenttools.PreviewArgs{To: "c1", Session: "two"})
	said(t, text, err, "session `two`, which is not the calling one", "restore `two.txt`")

	text, err = tools.RewindPreview(ctx, agenttools.PreviewArgs{To: "c1", Exact: true})
	said(t, text, err, "including those of the user", "restore `user.txt`", "restore `two.txt`")
	text, err = tools.Rewind(ctx, agenttools.RewindArgs{Token: tokenOf(t, text)})
	said(t, text, err, "Rewound")
	want := map[string]string{"one.txt": "zero\n", "two.txt": "zero\n", "user.txt": "zero\n", "gone.txt": "zero\n"}
	if got := f.files(); !maps.Equal(got, want) {
		t.Errorf("after an exact rewind: %q", got)
	}
	text, err = tools.Undo(ctx, agenttools.UndoArgs{})
	said(t, text, err, "restored")
}

func TestRewindNeedsTheTokenOfThisPlan(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	tools, before := f.tools("one"), f.files()
	text, err := tools.Rewind(ctx, agenttools.RewindArgs{Token: "0123"})
	failed(t, text, err, "no plan has this token")
	text, err = tools.RewindPreview(ctx, agenttools.PreviewArgs{})
	said(t, text, err)
	token := tokenOf(t, text)

	f.write("one.txt", "changed since\n")
	before["one.txt"] = "changed since\n"
	text, err = tools.Rewind(ctx, agenttools.RewindArgs{Token: token})
	failed(t, text, err, "no longer as in the preview", "rewind_preview")
	if got := f.files(); !maps.Equal(got, before) {
		t.Errorf("a refused rewind changed files: %q", got)
	}

	// Another server has not shown the plan, even if it is the same one.
	text, err = tools.RewindPreview(ctx, agenttools.PreviewArgs{})
	said(t, text, err)
	text, err = f.tools("one").Rewind(ctx, agenttools.RewindArgs{Token: tokenOf(t, text)})
	failed(t, text, err, "no plan has this token")
}

// The user agrees to a plan in the next turn.
func TestTokenOutlivesTheTurn(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	tools := f.tools("one")
	text, err := tools.RewindPreview(ctx, agenttools.PreviewArgs{})
	said(t, text, err)
	f.end("one", 2, "take it back", "shall I?")
	f.begin("one", 3)
	text, err = tools.Rewind(ctx, agenttools.RewindArgs{Token: tokenOf(t, text)})
	said(t, text, err, "Rewound 3 files")
}

func TestPreviewOfNothing(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	text, err := f.tools("two").RewindPreview(ctx, agenttools.PreviewArgs{To: "turn:1"})
	said(t, text, err, "Nothing to do")
	if tokenInText.MatchString(text) {
		t.Errorf("a plan without changes has a token:\n%s", text)
	}
}

func TestPreviewRefuses(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	tools := f.tools("one")
	for _, c := range []struct {
		args agenttools.PreviewArgs
		want string
	}{
		{agenttools.PreviewArgs{To: "c99"}, "not found"},
		{agenttools.PreviewArgs{To: "@"}, "present"},
		{agenttools.PreviewArgs{To: "turn:x"}, "turn"},
		{agenttools.PreviewArgs{To: "c1", OnlyTurn: 1}, "excludes"},
		{agenttools.PreviewArgs{OnlyTurn: -1}, "from 1"},
		{agenttools.PreviewArgs{To: "c1", Conflicts: "theirs"}, "keep or merge"},
		{agenttools.PreviewArgs{To: "c1", Paths: []string{"../x"}}, "outside"},
		{agenttools.PreviewArgs{To: "c1", Paths: []string{""}}, "an empty path names nothing"},
		{agenttools.PreviewArgs{To: "c1", Session: "nobody"}, "nothing of session `nobody`"},
		{agenttools.PreviewArgs{Session: "two"}, "`to`"},
	} {
		text, err := tools.RewindPreview(ctx, c.args)
		failed(t, text, err, c.want)
	}
	text, err := f.tools("").RewindPreview(ctx, agenttools.PreviewArgs{To: "c1"})
	failed(t, text, err, "which session is calling is not known")
	text, err = f.tools("two").RewindPreview(ctx, agenttools.PreviewArgs{})
	failed(t, text, err, "no running turn")
}

func TestOnlyTurn(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	f.end("one", 2, "second", "done")
	f.begin("one", 3)
	f.write("late.txt", "late\n")
	tools := f.tools("one")
	text, err := tools.RewindPreview(ctx, agenttools.PreviewArgs{OnlyTurn: 2})
	said(t, text, err, "take back turn 2", "delete `one-new.txt`")
	text, err = tools.Rewind(ctx, agenttools.RewindArgs{Token: tokenOf(t, text)})
	said(t, text, err, "Rewound")
	if got := f.files(); got["late.txt"] != "late\n" || got["one-new.txt"] != "" || got["one.txt"] != "first\n" {
		t.Errorf("after taking back turn 2: %q", got)
	}
}

func TestUndoLeavesRewindsOfOthersAlone(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	f.do(func(ctx context.Context, p *agenttools.Place) error {
		_, err := p.Space.Rewind(ctx, checkpoint.RewindRequest{To: "before:turn:2", Conversation: "one", Author: "ada"}, "")
		return err
	})
	rewound := f.files()
	text, err := f.tools("one").Undo(ctx, agenttools.UndoArgs{})
	failed(t, text, err, "was not made by this session", "anybody")
	if got := f.files(); !maps.Equal(got, rewound) {
		t.Errorf("a refused undo changed files: %q", got)
	}
	text, err = f.tools("one").Undo(ctx, agenttools.UndoArgs{Anybody: true})
	said(t, text, err, "restored 3 files")
}

func TestUndoAfterChanges(t *testing.T) {
	ctx, f := context.Background(), shared(t)
	tools := f.tools("one")
	text, err := tools.RewindPreview(ctx, agenttools.PreviewArgs{})
	said(t, text, err)
	text, err = tools.Rewind(ctx, agenttools.RewindArgs{Token: tokenOf(t, text)})
	said(t, text, err)
	f.write("one.txt", "of the user\n")
	text, err = tools.Undo(ctx, agenttools.UndoArgs{})
	failed(t, text, err, "`one.txt`", "nothing was changed")
	text, err = tools.Undo(ctx, agenttools.UndoArgs{Conflicts: "sideways"})
	failed(t, text, err, "keep or merge")
	text, err = tools.Undo(ctx, agenttools.UndoArgs{Conflicts: "keep"})
	said(t, text, err, "restored 2 files")
	if got := f.files(); got["one.txt"] != "of the user\n" || got["one-new.txt"] != "made\n" {
		t.Errorf("after the undo: %q", got)
	}
}
