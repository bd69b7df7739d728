package cursorexport_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorexport"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

const (
	fixture = "../testdata/state.vscdb"
	agentID = "bc-22222222-2222-4222-8222-222222222222"
)

// imported returns a new store with what is in a store of the editor.
func imported(t testing.TB, path string) (*stet.DB, cursorimport.Target) {
	t.Helper()
	db, dst := cursortest.OpenDB(t)
	r, err := cursorimport.Import(t.Context(), cursortest.Open(t, path, nil), dst, nil)
	if err != nil || r.Damaged() > 0 {
		t.Fatalf("import %s: %+v, %v", path, r, err)
	}
	report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
	if err != nil || !report.OK() {
		t.Fatalf("imported %s: %+v, %v", path, report, err)
	}
	return db, dst
}

func all(t testing.TB, db *stet.DB) []string {
	t.Helper()
	ids, err := db.Conversations().IDs(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// export writes conversations into a new file and checks the file as SQLite sees it.
func export(t testing.TB, src cursorimport.Target, ids []string, opts *cursorexport.Options) (string, cursorexport.Result) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.vscdb")
	r, err := cursorexport.Export(t.Context(), src, path, ids, opts)
	if err != nil {
		t.Fatal(err)
	}
	if left := entries(t, filepath.Dir(path)); len(left) != 1 {
		t.Errorf("beside the file: %v", left)
	}
	db := cursortest.Create(t, path, "")
	s, _, err := db.Prepare("PRAGMA integrity_check")
	if err != nil || !s.Step() || s.ColumnText(0) != "ok" {
		t.Errorf("integrity: %v", err)
	}
	s.Close()
	db.Close()
	report, err := cursortest.Open(t, path, nil).Verify(t.Context(), nil)
	if err != nil || !report.OK() {
		t.Errorf("verify: %+v, %v", report, err)
	}
	return path, r
}

func entries(t testing.TB, dir string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

// rowsOf returns all rows of a store but those of this store alone. Which file a
// conversation came from is left out.
func rowsOf(t testing.TB, rows kv.Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for row, err := range rows.Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if cursortest.OwnRow(row.Key) {
			continue
		}
		value := string(row.Value)
		if strings.HasPrefix(row.Key, "stet:conversation:") {
			rec := &stetv1.ConversationRecord{}
			if err := proto.Unmarshal(row.Value, rec); err != nil {
				t.Fatal(err)
			}
			delete(rec.Labels, "source_path")
			delete(rec.Labels, "source_digest")
			rec.Writer = nil // random
			value = rec.String()
		}
		out[row.Key] = value
	}
	return out
}

// What is exported and imported into another store is the same there, row by row: states,
// pointers, messages, checkpoints, original files, cloud agents, times and labels.
func TestRoundTripOfTheFixture(t *testing.T) {
	db, src := imported(t, fixture)
	path, r := export(t, src, all(t, db), nil)
	if r.Conversations != 3 || r.Messages != 4 || r.Checkpoints != 4 || len(r.Empty) != 0 || len(r.LeftOut) != 0 {
		t.Errorf("result = %+v", r)
	}
	_, again := imported(t, path)
	if d := cmp.Diff(rowsOf(t, src.Rows), rowsOf(t, again.Rows)); d != "" {
		t.Error(d)
	}
	// Blobs that the rows name are the same too: each state is complete, and checked.
	for _, id := range all(t, db) {
		info, err := db.Conversations().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		want, err := src.Blobs.Get(t.Context(), info.Root)
		got, gotErr := again.Blobs.Get(t.Context(), info.Root)
		if err != nil || gotErr != nil || string(want) != string(got) {
			t.Errorf("state of %s: %v, %v", id, err, gotErr)
		}
	}
}

// The rows are those of the editor: keys, storage classes and values.
func TestRowsAreThoseOfTheEditor(t *testing.T) {
	db, src := imported(t, fixture)
	path, _ := export(t, src, all(t, db), nil)
	from, to := cursortest.Open(t, fixture, nil), cursortest.Open(t, path, nil)
	pointer := cursor.MessageHeadPrefix // one is in upper case there
	for _, prefix := range []string{cursor.HeadPrefix, cursor.CheckpointPrefix, cursor.ConversationPrefix, cursor.MessagePrefix, cursor.CodeDiffPrefix, cursor.RequestPrefix, pointer} {
		for _, row := range cursortest.Collect(t, from.Rows(t.Context(), prefix)) {
			got, err := to.Value(t.Context(), row.Key)
			same := string(got.Data) == string(row.Value.Data) || prefix == pointer && strings.EqualFold(string(got.Data), string(row.Value.Data))
			if err != nil || got.Class != row.Value.Class || !same {
				t.Errorf("%s is %v %.80q, %v", row.Key, got.Class, got.Data, err)
			}
		}
	}
	for _, row := range cursortest.Collect(t, to.Rows(t.Context(), cursor.BlobPrefix)) {
		if row.Value.Class != cursor.ClassBlob {
			t.Errorf("%s has the class %v", row.Key, row.Value.Class)
		}
	}
	titles := map[string]string{}
	for _, h := range cursortest.Collect(t, to.Conversations(t.Context())) {
		titles[h.ID] = h.Title
	}
	if d := cmp.Diff(map[string]string{cursortest.Current: "fixture", cursortest.Legacy: "legacy hex state"}, titles); d != "" {
		t.Error(d)
	}
}

func turn(t testing.TB, id, text, answer string) conversation.Turn {
	t.Helper()
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text, MessageId: id},
		&agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: answer}}})
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// A conversation that was imported and continued here has its new state and its new
// messages behind the imported ones.
func TestContinuedConversation(t *testing.T) {
	db, src := imported(t, fixture)
	for _, id := range []string{cursortest.Current, agentID} {
		c, err := db.Conversations().Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AppendTurn(t.Context(), turn(t, "m-new", "and now", "done that")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Save(t.Context(), &conversation.SaveOptions{MessageID: "m-new"}); err != nil {
			t.Fatal(err)
		}
	}
	path, _ := export(t, src, all(t, db), nil)
	there := cursortest.Open(t, path, nil)
	conv, err := there.Conversation(t.Context(), cursortest.Current)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range cursortest.Collect(t, there.Messages(t.Context(), conv)) {
		if !m.Orphan {
			texts = append(texts, m.Text)
		}
	}
	if d := cmp.Diff([]string{"add a line", "", "done", "and now", "done that"}, texts); d != "" {
		t.Error(d)
	}
	again, dst := imported(t, path)
	for _, id := range []string{cursortest.Current, agentID} {
		want, err := db.Conversations().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.Conversations().Get(t.Context(), id)
		if err != nil || got.Root != want.Root || got.Turns != want.Turns || got.Title != want.Title || got.Labels["kind"] != want.Labels["kind"] {
			t.Errorf("%s: %+v, %v; want %+v", id, got, err, want)
		}
		head, err := again.Conversations().MessageHead(t.Context(), id, "m-new")
		if err != nil || head != want.Root {
			t.Errorf("%s: state at the new message: %s, %v", id, head.Short(), err)
		}
	}
	// A second export of what was imported gives the same again.
	second, _ := export(t, dst, all(t, again), nil)
	_, third := imported(t, second)
	if d := cmp.Diff(rowsOf(t, dst.Rows), rowsOf(t, third.Rows)); d != "" {
		t.Error(d)
	}
}

// A checkpoint that is inside an old row and has an id of its own is there once.
func TestCheckpointInsideARowAndBesideIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.vscdb")
	db := cursortest.Create(t, path, cursortest.EditorSchema)
	checkpoint := `{"files":[{"uri":"file:///w/a","originalModelDiffWrtV0":[]}]}`
	cursortest.Insert(t, db, "composerData:c", `{"composerId":"c","createdAt":1700000000000,"conversation":[{"bubbleId":"m","type":1,"text":"hi","checkpointId":"own","checkpoint":`+checkpoint+`}],`+
		`"latestCheckpoint":`+checkpoint+`,"originalFileStates":{"file:///w/a":{"content":"x"}}}`)
	db.Close()
	store, src := imported(t, path)
	out, r := export(t, src, all(t, store), nil)
	if r.Checkpoints != 1 { // the other one has no id outside of the row
		t.Errorf("result = %+v", r)
	}
	_, again := imported(t, out)
	if d := cmp.Diff(rowsOf(t, src.Rows), rowsOf(t, again.Rows)); d != "" {
		t.Error(d)
	}
}

// Agents of the SDK become conversations that the editor can show.
func TestExportOfAnSDKStore(t *testing.T) {
	db, src := cursortest.OpenDB(t)
	if _, err := cursorimport.Import(t.Context(), cursortest.Open(t, "../testdata/sdk-store/sqlite", nil), src, nil); err != nil {
		t.Fatal(err)
	}
	// The fixture has lost its state.
	path := filepath.Join(t.TempDir(), "out.vscdb")
	_, err := cursorexport.Export(t.Context(), src, path, all(t, db), nil)
	if !errors.Is(err, conversation.ErrNotFound) || len(entries(t, filepath.Dir(path))) != 0 {
		t.Errorf("nothing to export: %v", err)
	}
	c, err := db.Conversations().Open(t.Context(), all(t, db)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AppendTurn(t.Context(), turn(t, "m1", "hello", "world")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	out, r := export(t, src, all(t, db), nil)
	if r.Conversations != 1 || r.Messages != 2 {
		t.Errorf("result = %+v", r)
	}
	again, _ := imported(t, out)
	info, err := again.Conversations().Get(t.Context(), c.ID())
	if err != nil || info.Root != c.Head().Root {
		t.Errorf("%+v, %v", info, err)
	}
}
