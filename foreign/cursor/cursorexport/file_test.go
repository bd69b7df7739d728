package cursorexport_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorexport"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
)

func content(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// An existing file is never changed, nor is the base, whatever it is called.
func TestNothingIsOverwritten(t *testing.T) {
	db, src := imported(t, fixture)
	base := cursortest.Copy(t, fixture, "state.vscdb")
	dir := filepath.Dir(base)
	link := filepath.Join(dir, "link.vscdb")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(dir, "new.vscdb-wal")
	if err := os.WriteFile(journal, []byte("of another file"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, names := content(t, base), entries(t, dir)
	for _, path := range []string{base, link, filepath.Join(dir, "new.vscdb"), dir} {
		_, err := cursorexport.Export(t.Context(), src, path, all(t, db), &cursorexport.Options{Base: base})
		if !errors.Is(err, cursor.ErrExists) || fault.Of(err) != fault.Exists {
			t.Errorf("%s: %v", path, err)
		}
	}
	if d := cmp.Diff(names, entries(t, dir)); d != "" || content(t, base) != before {
		t.Errorf("something was changed: %s", d)
	}
}

// The base is copied with what is only in its WAL, while another program has it open, and
// stays as it is. Everything else in it stays in the copy; what it has of the exported
// conversations is replaced.
func TestBaseInWALMode(t *testing.T) {
	db, src := imported(t, fixture)
	base := filepath.Join(t.TempDir(), "state.vscdb")
	editor := cursortest.Create(t, base, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;"+cursortest.EditorSchema+
		"CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, workspaceId TEXT, createdAt INTEGER, lastUpdatedAt INTEGER, isArchived INTEGER, isSubagent INTEGER, recency INTEGER, checkpointAt INTEGER, value TEXT);"+
		`INSERT INTO ItemTable VALUES ('theme', 'dark'), ('composer.composerHeaders', '{"allComposers":[{"composerId":"other","name":"theirs"}],"more":1}');`)
	cursortest.Insert(t, editor, "composerData:other", `{"composerId":"other","name":"theirs"}`)
	cursortest.Insert(t, editor, "bubbleId:other:m", `{"type":1,"text":"hi"}`)
	cursortest.Insert(t, editor, "bubbleId:"+cursortest.Current+":stale", `{"type":1,"text":"stale"}`)
	cursortest.Insert(t, editor, "composerData:"+cursortest.Current, nil) // deleted there
	before := []string{content(t, base), content(t, base+"-wal")}
	path, _ := export(t, src, all(t, db), &cursorexport.Options{Base: base})
	if d := cmp.Diff(before, []string{content(t, base), content(t, base+"-wal")}); d != "" {
		t.Error("the base was changed")
	}
	copied := cursortest.Open(t, path, nil)
	titles := map[string]string{}
	for _, h := range cursortest.Collect(t, copied.Conversations(t.Context())) {
		titles[h.ID] = h.Title
	}
	want := map[string]string{"other": "theirs", cursortest.Current: "fixture", cursortest.Legacy: "legacy hex state"}
	if d := cmp.Diff(want, titles); d != "" {
		t.Error(d)
	}
	if _, err := copied.Value(t.Context(), "bubbleId:other:m"); err != nil {
		t.Error(err)
	}
	if _, err := copied.Value(t.Context(), "bubbleId:"+cursortest.Current+":stale"); !errors.Is(err, cursor.ErrNotFound) {
		t.Errorf("a message that the store does not have: %v", err)
	}
	check := cursortest.Create(t, path, "")
	s, _, err := check.Prepare(`SELECT (SELECT value FROM ItemTable WHERE key = 'theme'), (SELECT count(*) FROM composerHeaders),
		(SELECT json_array_length(value, '$.allComposers') FROM ItemTable WHERE key = 'composer.composerHeaders'),
		(SELECT json_extract(value, '$.more') FROM ItemTable WHERE key = 'composer.composerHeaders')`)
	if err != nil || !s.Step() || s.ColumnText(0) != "dark" || s.ColumnInt(1) != 2 || s.ColumnInt(2) != 3 || s.ColumnInt(3) != 1 {
		t.Errorf("copied: %q %d %d %d, %v", s.ColumnText(0), s.ColumnInt(1), s.ColumnInt(2), s.ColumnInt(3), err)
	}
	s.Close()
	for _, wrong := range []string{"../testdata/expected.json", "../testdata/sdk-store/sqlite", "nothing"} {
		path := filepath.Join(t.TempDir(), "out.vscdb")
		_, err := cursorexport.Export(t.Context(), src, path, all(t, db), &cursorexport.Options{Base: wrong})
		if err == nil || len(entries(t, filepath.Dir(path))) != 0 {
			t.Errorf("with the base %s: %v", wrong, err)
		}
	}
}

var errKilled = errors.New("killed")

// mortalBlobs fail from the nth read on.
type mortalBlobs struct {
	blob.Store
	left *atomic.Int64
}

func (m mortalBlobs) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if m.left.Add(-1) < 0 {
		return nil, errKilled
	}
	return m.Store.Get(ctx, id)
}

// Wherever an export ends early, nothing is left; the file appears when it is complete.
func TestAFileIsCompleteOrNotThere(t *testing.T) {
	db, src := imported(t, fixture)
	ids := all(t, db)
	dir := t.TempDir()
	path := filepath.Join(dir, "out.vscdb")
	for n := int64(0); ; n += 7 {
		left := new(atomic.Int64)
		left.Store(n)
		_, err := cursorexport.Export(t.Context(), cursorimport.Target{Blobs: mortalBlobs{src.Blobs, left}, Rows: src.Rows}, path, ids, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) || len(entries(t, dir)) != 0 {
			t.Fatalf("after %d reads: %v, left %v", n, err, entries(t, dir))
		}
	}
	_, again := imported(t, path)
	if d := cmp.Diff(rowsOf(t, src.Rows), rowsOf(t, again.Rows)); d != "" {
		t.Error(d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cursorexport.Export(ctx, src, filepath.Join(dir, "second.vscdb"), ids, nil); !errors.Is(err, context.Canceled) || len(entries(t, dir)) != 1 {
		t.Errorf("cancelled: %v, %v", err, entries(t, dir))
	}
}

// lacking is a store that has lost a blob.
type lacking struct {
	blob.Store
	lost blob.ID
}

func (l lacking) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == l.lost {
		return nil, blob.NotFound(id)
	}
	return l.Store.Get(ctx, id)
}

// A conversation with a lost part fails the export, or is left out of it as a whole.
func TestLostPartsAreDataLoss(t *testing.T) {
	db, src := imported(t, fixture)
	info, err := db.Conversations().Get(t.Context(), agentID)
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "lost", Title: "lost"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AppendTurn(t.Context(), turn(t, "m", "hello", "world")); err != nil {
		t.Fatal(err)
	}
	saved, err := c.Save(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	src.Blobs = lacking{src.Blobs, saved.Root}
	path := filepath.Join(t.TempDir(), "out.vscdb")
	_, err = cursorexport.Export(t.Context(), src, path, all(t, db), nil)
	var loss *cursor.DataLossError
	if !errors.As(err, &loss) || loss.Source != cursor.HeadPrefix+"lost" || fault.Of(err) != fault.Damaged || len(entries(t, filepath.Dir(path))) != 0 {
		t.Errorf("%v, left %v", err, entries(t, filepath.Dir(path)))
	}
	var left []string
	out, r := export(t, src, all(t, db), &cursorexport.Options{Damaged: func(id string, err error) { left = append(left, id) }})
	if len(left) != 1 || left[0] != "lost" || r.Conversations != 3 {
		t.Errorf("left out %v, result %+v", left, r)
	}
	again, _ := imported(t, out)
	if got, err := again.Conversations().Get(t.Context(), agentID); err != nil || got.Root != info.Root {
		t.Errorf("%+v, %v", got, err)
	}
	if ok, err := again.Conversations().Exists(t.Context(), "lost"); ok || err != nil {
		t.Errorf("the lost one: %v, %v", ok, err)
	}
}

// Ids of which one looks like the beginning of another's keys cannot be in one file.
func TestIDsThatLookAlike(t *testing.T) {
	_, src := cursortest.OpenDB(t)
	_, err := cursorexport.Export(t.Context(), src, filepath.Join(t.TempDir(), "out.vscdb"), []string{"a", "a:b"}, nil)
	if !errors.Is(err, cursor.ErrUnsupported) {
		t.Error(err)
	}
}
