package purge_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/purge"
)

// copied saves a conversation as a copy of a session, whose agent has a record of it.
func (w *world) copied(db *stet.DB, id, record string, said ...string) (path string) {
	w.t.Helper()
	w.talk(db, id, id, said...)
	path = filepath.Join(filepath.Dir(w.store), id+".jsonl")
	must(w.t, os.WriteFile(path, []byte(record), 0o600))
	must(w.t, os.Chtimes(path, time.Now(), time.Now().Add(-time.Minute)))
	must(w.t, db.Conversations().SetLabel(w.t.Context(), id, conversation.LabelSource, "agent"))
	must(w.t, db.Conversations().SetLabel(w.t.Context(), id, conversation.LabelPath, path))
	return path
}

// What would bring the bytes back is cut off: sessions whose conversations or records hold
// them, also those whose conversations were removed. The records stay.
func TestSessionsAreCutOff(t *testing.T) {
	w := newWorld(t, false)
	db := w.open()
	defer db.Close()
	ctx := t.Context()
	told := w.copied(db, "told", "say "+secret, "say "+secret)
	w.copied(db, "shortened", "nothing", "say "+secret) // its agent has removed it there
	late := w.copied(db, "late", "nothing, then "+secret, "nothing")
	removed := w.copied(db, "removed", "say "+secret, "say "+secret)
	w.copied(db, "clean", "nothing", "nothing")
	w.talk(db, "own", "own", "say "+secret)
	must(t, db.Conversations().Delete(ctx, "removed", nil))

	target := purge.Target{Secrets: [][]byte{[]byte(secret)}}
	plan, res := w.purge(db, target)
	var records []string
	for _, s := range plan.Sessions {
		if s.Holds {
			records = append(records, s.Path)
		}
	}
	slices.Sort(records)
	if want := []string{late, removed, told}; !slices.Equal(records, want) || len(res.Remains) != 0 {
		t.Errorf("records %q, want %q; left %+v", records, want, res.Remains)
	}
	for id, want := range map[string]bool{"told": true, "shortened": true, "late": true, "removed": true, "clean": false, "own": false} {
		cut, _, err := db.Conversations().Cutoff(ctx, id)
		must(t, err)
		if cut.Purged != want || want && time.Since(cut.Until) > time.Minute || cut.Removed != (id == "removed") {
			t.Errorf("%s: %+v", id, cut)
		}
	}
	if data, err := os.ReadFile(told); err != nil || string(data) != "say "+secret {
		t.Errorf("the record: %q, %v", data, err)
	}

	// Nothing is left to do until a record changes.
	plan, err := w.purger(db).Find(ctx, target)
	must(t, err)
	if !plan.Empty() || len(plan.Sessions) != 3 {
		t.Errorf("found again: %+v", plan.Sessions)
	}
	must(t, os.Chtimes(late, time.Now(), time.Now().Add(time.Minute)))
	plan, err = w.purger(db).Find(ctx, target)
	must(t, err)
	if plan.Empty() {
		t.Error("a record that has changed needs nothing")
	}
}

// The sessions are cut off before anything is rewritten.
func TestAKilledPurgeHasCutOffFirst(t *testing.T) {
	made := newWorld(t, false)
	db := made.open()
	made.copied(db, "told", "say "+secret, "say "+secret)
	before, err := db.Conversations().Get(t.Context(), "told")
	must(t, err)
	must(t, db.Close())
	for n := 0; ; n++ {
		w := &world{t: t, store: filepath.Join(t.TempDir(), "store"), project: made.project, opts: &stet.Options{}}
		must(t, os.CopyFS(w.store, os.DirFS(made.store)))
		finished := w.dying(n, purge.Target{Secrets: [][]byte{[]byte(secret)}})
		db := w.open()
		now, err := db.Conversations().Get(t.Context(), "told")
		must(t, err)
		cut, _, err := db.Conversations().Cutoff(t.Context(), "told")
		must(t, err)
		must(t, db.Close())
		if now.Root != before.Root && !cut.Purged {
			t.Errorf("after %d changes it was rewritten and not cut off", n)
		}
		if finished {
			return
		}
	}
}
