package cursorexport_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor/cursorexport"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	"github.com/stet-dev/stet/workspace"
)

// A conversation of the store with checkpoints of files becomes one of the editor: its
// messages, and before and after each turn the files that the conversation changed.
func TestConversationOfTheStore(t *testing.T) {
	db, src := cursortest.OpenDB(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "talk", Title: "a talk", Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	w, err := db.Checkpoints().Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	capture := func(n uint64, side checkpoint.Side) {
		t.Helper()
		_, err := w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "talk", Turn: n, Side: side})
		if err != nil {
			t.Fatal(err)
		}
	}
	say := func(id, text string) {
		t.Helper()
		if err := c.AppendTurn(t.Context(), turn(t, id, text, "about "+text)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Save(t.Context(), &conversation.SaveOptions{MessageID: id}); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("a long line\n", 100_000)
	write("a.txt", "one\ntwo\n")
	write("data", "\xff\xfe\x00")
	write("long", long)
	write("mine", "mine\n")
	capture(1, checkpoint.Before)
	write("a.txt", "one\nand\ntwo\n")
	write("new.txt", "new\n")
	write("data", "\xff\xfd")
	write("long", long+"x")
	if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	say("m1", "first")
	capture(1, checkpoint.After)
	write("mine", "changed by me\n")
	capture(2, checkpoint.Before)
	write("a.txt", "")
	if err := os.Remove(filepath.Join(dir, "new.txt")); err != nil {
		t.Fatal(err)
	}
	say("m2", "second")
	capture(2, checkpoint.After)

	path, r := export(t, src, []string{"talk"}, nil)
	if r.Conversations != 1 || r.Messages != 4 || r.Checkpoints != 4 || cmp.Diff([]string{"link"}, r.LeftOut) != "" {
		t.Errorf("result = %+v", r)
	}
	there := cursortest.Open(t, path, nil)
	conv, err := there.Conversation(t.Context(), "talk")
	if err != nil || conv.Title != "a talk" || conv.WorkspacePath() != dir || conv.State == nil || conv.State.ID != c.Head().Root || len(conv.Alternates) != 0 {
		t.Errorf("%+v, %v", conv, err)
	}
	var got []string
	for _, m := range cursortest.Collect(t, there.Messages(t.Context(), conv)) {
		sides := ""
		if m.Before != "" {
			sides += " before"
		}
		if m.After != "" {
			sides += " after"
		}
		got = append(got, m.Role.String()+" "+m.Text+sides)
	}
	if d := cmp.Diff([]string{"user first before", "assistant about first after", "user second before", "assistant about second after"}, got); d != "" {
		t.Error(d)
	}

	again, dst := imported(t, path)
	info, err := again.Conversations().Get(t.Context(), "talk")
	want, wantErr := db.Conversations().Get(t.Context(), "talk")
	if err != nil || wantErr != nil || info.Root != want.Root || info.Title != want.Title || info.Workspace != want.Workspace || !info.Created.Equal(want.Created) {
		t.Errorf("%+v, %v; want %+v", info, err, want)
	}
	head, err := again.Conversations().MessageHead(t.Context(), "talk", "m1")
	if before, wantErr := db.Conversations().MessageHead(t.Context(), "talk", "m1"); err != nil || wantErr != nil || head != before {
		t.Errorf("state at the first message: %s, %v", head.Short(), err)
	}
	// Every imported checkpoint has the files that the conversation changed, as they were.
	trees := map[string]*checkpoint.Record{}
	for _, rec := range cursortest.Collect(t, db.Checkpoints().ListConversation(t.Context(), "talk")) {
		trees[rec.ID] = rec
	}
	n := 0
	for _, rec := range cursortest.Collect(t, again.Checkpoints().ListConversation(t.Context(), "talk")) {
		from := trees[rec.Source]
		if n++; from == nil || from.Turn != rec.Turn || from.Side != rec.Side {
			t.Errorf("checkpoint %s of %+v", rec.Source, from)
			continue
		}
		for _, name := range []string{"a.txt", "new.txt", "data", "long"} {
			want, wantErr := workspace.Lookup(t.Context(), src.Blobs, from.Tree, name)
			got, err := workspace.Lookup(t.Context(), dst.Blobs, rec.Tree, name)
			if (err == nil) != (wantErr == nil) || got.ID != want.ID || got.Size != want.Size {
				t.Errorf("%s at turn %d %v: %v, %v; want %v, %v", name, rec.Turn, rec.Side, got, err, want, wantErr)
			}
		}
		if _, err := workspace.Lookup(t.Context(), dst.Blobs, rec.Tree, "mine"); err == nil {
			t.Errorf("turn %d %v has a file of the user", rec.Turn, rec.Side)
		}
	}
	if n != 4 {
		t.Errorf("%d checkpoints", n)
	}
	second, _ := export(t, src, []string{"talk"}, nil)
	if d := cmp.Diff(editorRows(t, path), editorRows(t, second)); d != "" {
		t.Errorf("a second export differs: %s", d)
	}
}

func editorRows(t testing.TB, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	s := cursortest.Open(t, path, nil)
	for _, key := range cursortest.Collect(t, s.Keys(t.Context(), "")) {
		v, err := s.Value(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		out[key] = v.Class.String() + string(v.Data)
	}
	return out
}

// A conversation without a saved state has nothing to write.
func TestEmptyConversation(t *testing.T) {
	db, src := imported(t, fixture)
	if _, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "empty"}); err != nil {
		t.Fatal(err)
	}
	_, r := export(t, src, all(t, db), &cursorexport.Options{})
	if r.Conversations != 3 || cmp.Diff([]string{"empty"}, r.Empty) != "" {
		t.Errorf("result = %+v", r)
	}
}
