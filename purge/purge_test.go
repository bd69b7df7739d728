package purge_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/purge"
	"github.com/stet-dev/stet/workspace"
)

func stores(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Run("plain", func(t *testing.T) { fn(t, newWorld(t, false)) })
	t.Run("encrypted", func(t *testing.T) { fn(t, newWorld(t, true)) })
}

func remains(t *testing.T, res *purge.Result) {
	t.Helper()
	for _, one := range res.Remains {
		t.Errorf("left: %+v", one)
	}
	if res.Scanned.Blobs == 0 || res.Scanned.Rows == 0 || res.Scanned.Files == 0 {
		t.Errorf("the proof looked at %+v", res.Scanned)
	}
}

func TestASecretIsRemovedEverywhere(t *testing.T) {
	stores(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		db := w.open()
		defer db.Close()
		first, _ := w.history(db)
		index, err := db.Search(ctx)
		must(t, err)
		_, err = index.Update(ctx)
		must(t, err)
		_, err = db.Archive(ctx, "idle")
		must(t, err)
		must(t, db.Compact(ctx, nil)) // differences, and traces of what was there before
		if w.opts.Unlock == nil && len(w.grep(secret)) == 0 {
			t.Fatal("the secret is nowhere")
		}

		plan, res := w.purge(db, purge.Target{Secrets: [][]byte{[]byte(secret)}})
		remains(t, res)
		var paths []string
		for _, f := range plan.Files {
			paths = append(paths, f.Path)
		}
		if want := []string{".env", "deep/er/config.json"}; !slices.Equal(paths, want) || len(plan.Files[0].Checkpoints) != 3 {
			t.Errorf("files %q in %v, want %q", paths, plan.Files, want)
		}
		var talks []string
		for _, one := range plan.Conversations {
			talks = append(talks, one.ID)
		}
		if want := []string{"idle", "shop"}; !slices.Equal(talks, want) {
			t.Errorf("conversations %q, want %q", talks, want)
		}
		if res.Checkpoints != 3 || res.Conversations != 2 || res.Removed == 0 {
			t.Errorf("rewrote %+v", res)
		}
		w.sound(db)
		for _, id := range []string{"shop", "idle", "clean"} {
			said := text(t, db, id)
			if strings.Contains(said, secret) {
				t.Errorf("%s still says %q", id, said)
			}
			if masked := strings.Contains(said, strings.Repeat("*", len(secret))); masked != (id != "clean") {
				t.Errorf("%s says %q", id, said)
			}
		}
		pins, err := db.Conversations().Pins(ctx)
		if err != nil || len(pins) != 1 {
			t.Errorf("pins %v, %v", pins, err)
		}
		index, err = db.Search(ctx)
		must(t, err)
		_, err = index.Update(ctx)
		must(t, err)
		if found, err := index.Search(ctx, "abcdefghij", nil); err != nil || len(found.Hits) > 0 {
			t.Errorf("the search still finds %v, %v", found.Hits, err)
		}
		skipped, err := db.Checkpoints().NotCaptured(ctx, must1(t)(db.Checkpoints().Get(ctx, first.ID)))
		must(t, err)
		want := []workspace.Skipped{{Path: ".env", Reason: workspace.ReasonPurged}, {Path: "deep/er/config.json", Reason: workspace.ReasonPurged}}
		if !slices.EqualFunc(skipped, want, func(a, b workspace.Skipped) bool { return a.Path == b.Path && a.Reason == b.Reason }) {
			t.Errorf("the first checkpoint did not capture %v, want %v", skipped, want)
		}
		again, err := w.purger(db).Find(ctx, purge.Target{Secrets: [][]byte{[]byte(secret)}})
		if err != nil || !again.Empty() {
			t.Errorf("a second look found %+v, %v", again, err)
		}
		must(t, db.Close())
		if left := w.grep(secret); len(left) > 0 {
			t.Errorf("the bytes are still in %q", left)
		}
	})
}

func must1(t *testing.T) func(*checkpoint.Record, error) *checkpoint.Record {
	return func(r *checkpoint.Record, err error) *checkpoint.Record {
		t.Helper()
		must(t, err)
		return r
	}
}

func TestRewindLeavesAPurgedFileAlone(t *testing.T) {
	stores(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		db := w.open()
		defer db.Close()
		first, _ := w.history(db)
		_, res := w.purge(db, purge.Target{Secrets: [][]byte{[]byte(secret)}})
		remains(t, res)
		w.write(".env", "TOKEN=another\n")
		applied, err := w.space(db).Rewind(ctx, checkpoint.RewindRequest{To: first.ID, Exact: true, Scope: checkpoint.FilesOnly}, "")
		must(t, err)
		if got := w.read("main.go"); got != "package main\n" {
			t.Errorf("main.go is %q", got)
		}
		if got := w.read(".env"); got != "TOKEN=another\n" {
			t.Errorf(".env is %q", got)
		}
		named := false
		for _, a := range applied.Plan.Left() {
			named = named || a.Path == ".env" && strings.Contains(a.Reason, "purged")
		}
		if !named {
			t.Errorf("the rewind left %+v, want .env named as purged", applied.Plan.Left())
		}
		undone, err := w.space(db).Undo(ctx, nil)
		must(t, err)
		if got := w.read(".env"); got != "TOKEN=another\n" || undone == nil {
			t.Errorf(".env is %q after the undo", got)
		}
	})
}

// An undo has nothing to put back where content was purged, and removes nothing instead.
func TestUndoLeavesAPurgedFileAlone(t *testing.T) {
	stores(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		db := w.open()
		defer db.Close()
		w.write("conf", "old\n")
		w.write("other", "old\n")
		first := w.checkpoint(db, checkpoint.Request{})
		w.write("conf", "key = "+secret+"\n")
		w.write("other", "new\n")
		_, err := w.space(db).Rewind(ctx, checkpoint.RewindRequest{To: first.ID, Exact: true, Scope: checkpoint.FilesOnly}, "")
		must(t, err)
		_, res := w.purge(db, purge.Target{Secrets: [][]byte{[]byte(secret)}})
		remains(t, res)
		undone, err := w.space(db).Undo(ctx, nil)
		must(t, err)
		if conf, other := w.read("conf"), w.read("other"); conf != "old\n" || other != "new\n" {
			t.Errorf("after the undo conf is %q and other %q", conf, other)
		}
		if left := undone.Plan.Left(); len(left) != 1 || left[0].Path != "conf" || left[0].Why != checkpoint.WhyPurged {
			t.Errorf("the undo left %+v, want conf named as purged", left)
		}
		_, err = w.space(db).Redo(ctx, nil)
		must(t, err)
		if conf, other := w.read("conf"), w.read("other"); conf != "old\n" || other != "old\n" {
			t.Errorf("after the redo conf is %q and other %q", conf, other)
		}
	})
}

func TestAPathIsRemovedFromAllCheckpoints(t *testing.T) {
	stores(t, func(t *testing.T, w *world) {
		db := w.open()
		defer db.Close()
		w.write("keys/id", "-----BEGIN KEY-----\nabcdefgh\n")
		w.write("copy", "-----BEGIN KEY-----\nabcdefgh\n")
		w.write("short", "x=1\n")
		w.write("both", "first\n-----BEGIN KEY-----\nabcdefgh\nlast\n")
		w.checkpoint(db, checkpoint.Request{})
		w.write("keys/id", "-----BEGIN KEY-----\nijklmnop\n")
		w.checkpoint(db, checkpoint.Request{})
		w.talk(db, "shop", "a talk", "cat keys/id:\n-----BEGIN KEY-----\nabcdefgh")
		space := w.space(db)
		plan, res := w.purge(db, purge.Target{Workspace: space.ID(), Paths: []string{"keys", "short"}})
		var paths []string
		for _, f := range plan.Files {
			paths = append(paths, f.Path)
		}
		if want := []string{"copy", "keys/id", "short"}; !slices.Equal(paths, want) {
			t.Errorf("files %q, want %q", paths, want)
		}
		if len(plan.Partly) != 1 || plan.Partly[0].Path != "both" {
			t.Errorf("partly %v, want both", plan.Partly)
		}
		if strings.Contains(text(t, db, "shop"), "abcdefgh") {
			t.Errorf("the conversation says %q", text(t, db, "shop"))
		}
		if res.Checkpoints != 2 || res.Left() == 0 {
			t.Errorf("%+v, want the file that holds it as a part named", res)
		}
		w.sound(db)
		_, err := w.purger(db).Find(t.Context(), purge.Target{Workspace: space.ID(), Paths: []string{"nosuch"}})
		if !errors.Is(err, purge.ErrNotCaptured) {
			t.Errorf("a path that was never captured: %v", err)
		}
	})
}

func TestAStaleWriterCannotBringASecretBack(t *testing.T) {
	w := newWorld(t, false)
	ctx := t.Context()
	db := w.open()
	defer db.Close()
	c := w.talk(db, "shop", "a talk", "the key is "+secret)
	_, res := w.purge(db, purge.Target{Secrets: [][]byte{[]byte(secret)}})
	remains(t, res)
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: "go on"})
	must(t, err)
	must(t, c.AppendTurn(ctx, turn))
	if _, err := c.Save(ctx, nil); !errors.Is(err, conversation.ErrStale) {
		t.Errorf("a save over the old state: %v, want %v", err, conversation.ErrStale)
	}
	w.sound(db)
}

func TestCopiesAtARemote(t *testing.T) {
	w := newWorld(t, false)
	remote := newBucket()
	w.opts.Remote = &stet.Remote{Name: "bucket", Blobs: remote, Opaque: true, Remove: remote.remove}
	db := w.open()
	defer db.Close()
	w.history(db)
	_, err := db.Mirror().Send(t.Context(), nil)
	must(t, err)
	if remote.holding(secret) == 0 {
		t.Fatal("the remote has no copy")
	}
	remote.away = errors.New("away")
	_, res := w.purge(db, purge.Target{Secrets: [][]byte{[]byte(secret)}})
	if len(res.Remains) != 1 || res.Remains[0].Where != "remote bucket" {
		t.Errorf("left %+v, want the remote", res.Remains)
	}
	remote.away = nil
	plan, res := w.purge(db, purge.Target{Secrets: [][]byte{[]byte(secret)}})
	remains(t, res)
	if !plan.Unfinished {
		t.Error("the second purge does not finish the first")
	}
	if n := remote.holding(secret); n > 0 {
		t.Errorf("the remote still has %d copies", n)
	}
	again, err := w.purger(db).Find(t.Context(), purge.Target{Secrets: [][]byte{[]byte(secret)}})
	if err != nil || !again.Empty() {
		t.Errorf("a second look found %+v, %v", again, err)
	}
}

// A server that gets copies removes them itself. The proof names it until it has none, and
// while it cannot be asked.
func TestCopiesAtAServer(t *testing.T) {
	w := newWorld(t, false)
	remote := newBucket()
	w.opts.Remote = &stet.Remote{Name: "server", Blobs: remote, Opaque: true}
	db := w.open()
	defer db.Close()
	w.history(db)
	_, err := db.Mirror().Send(t.Context(), nil)
	must(t, err)
	target := purge.Target{Secrets: [][]byte{[]byte(secret)}}
	for _, c := range []struct {
		away error
		why  string
	}{{errors.New("connection refused"), "connection refused"}, {nil, "are there: only a purge there removes them"}} {
		remote.away = c.away
		_, res := w.purge(db, target)
		if len(res.Remains) != 1 || res.Remains[0].Where != "remote server" || !strings.Contains(res.Remains[0].Why, c.why) {
			t.Errorf("left %+v, want the server: %s", res.Remains, c.why)
		}
	}
	remote.drop()
	_, res := w.purge(db, target)
	remains(t, res)
	again, err := w.purger(db).Find(t.Context(), target)
	if err != nil || !again.Empty() {
		t.Errorf("afterwards: %+v, %v", again, err)
	}
}

func TestUnsuitableSecrets(t *testing.T) {
	w := newWorld(t, false)
	db := w.open()
	defer db.Close()
	for _, bad := range []string{"", "short", "********", strings.Repeat("x", purge.MaxSecret+1)} {
		if _, err := w.purger(db).Find(t.Context(), purge.Target{Secrets: [][]byte{[]byte(bad)}}); !errors.Is(err, purge.ErrSecret) {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
}
