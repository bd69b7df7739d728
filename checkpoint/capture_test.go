package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/workspace"
)

// A capture that stores nothing reports it.
func TestCaptureSaysWhenItDoesNot(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n")
	f.opts.DisableWrite = true
	f.reopen()
	res, err := f.w.Checkpoint(t.Context(), Request{})
	if err != nil || res.Record != nil || res.Skipped != SkippedOff || res.Complete() {
		t.Errorf("switched off: %+v, %v", res, err)
	}
	c := newClock()
	f.opts.DisableWrite, f.opts.ThresholdMS, f.opts.Now = false, 1000, c.Now
	f.reopen()
	f.save(Request{Auto: true})
	c.advance(999 * time.Millisecond)
	res, err = f.w.Checkpoint(t.Context(), Request{Auto: true})
	if err != nil || res.Record != nil || res.Skipped != SkippedThrottled {
		t.Errorf("too soon: %+v, %v", res, err)
	}
	if rec := f.save(Request{}); rec == nil {
		t.Error("a checkpoint that was asked for was throttled")
	}
	if rec := f.save(Request{Auto: true, Side: Before, Conversation: "c"}); rec == nil {
		t.Error("a checkpoint before a turn was throttled")
	}
	c.advance(time.Second)
	if rec := f.save(Request{Auto: true}); rec == nil {
		t.Error("throttled for too long")
	}
	f.opts.DisableRead = true
	f.reopen()
	if _, err := f.w.Plan(t.Context(), RewindRequest{To: "c1"}); !errors.Is(err, ErrDisabled) {
		t.Errorf("plan while reading is off: %v", err)
	}
	if _, err := f.w.Rewind(t.Context(), RewindRequest{To: "c1"}, ""); !errors.Is(err, ErrDisabled) {
		t.Errorf("rewind while reading is off: %v", err)
	}
}

func TestRecordsCountChanges(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1\n2\n", "b", "1\n", "bin", "\x00\x01")
	first := f.save(Request{})
	if first.FilesChanged != 3 || first.Number != 1 || first.Parent != "" {
		t.Errorf("first: %+v", first)
	}
	f.write("a", "1\ntwo\nthree\n", "new/c", "c\n", "bin", "\x00\x02")
	f.remove("b")
	rec := f.save(Request{Label: "second", Author: "me", Tool: "Edit"})
	if rec.FilesChanged != 4 || rec.LinesAdded != 3 || rec.LinesRemoved != 2 || rec.Parent != first.ID {
		t.Errorf("second: %d files +%d -%d after %s", rec.FilesChanged, rec.LinesAdded, rec.LinesRemoved, rec.Parent)
	}
	got, err := f.w.s.Get(t.Context(), rec.ID)
	must(t, err)
	if got.Label != "second" || got.Author != "me" || got.Tool != "Edit" || got.Tree != rec.Tree || !got.Time.Equal(rec.Time) {
		t.Errorf("stored %+v, want %+v", got, rec)
	}
}

// With hints only the named paths are looked at, and the list of what is not
// captured stays whole.
func TestHints(t *testing.T) {
	f := newFixture(t)
	f.write(".gitignore", "*.log\n", "a", "0\n", "b", "0\n", "x.log", "log\n")
	f.save(Request{})
	f.write("a", "1\n", "b", "1\n", "y.log", "log\n")
	rec := f.save(Request{Paths: []string{"a"}})
	if rec.FilesChanged != 1 || !rec.Hinted {
		t.Errorf("hinted: %+v", rec)
	}
	skipped, err := f.w.s.NotCaptured(t.Context(), rec)
	must(t, err)
	if len(skipped) != 1 || skipped[0].Path != "x.log" {
		t.Errorf("not captured: %v", skipped)
	}
	f.reopen()
	if rec = f.save(Request{Paths: []string{"b"}}); rec.FilesChanged != 1 {
		t.Errorf("hinted after reopening: %+v", rec)
	}
	e, err := workspace.Lookup(t.Context(), f.blobs, rec.Tree, "a")
	if err != nil || e.ID != blob.Sum([]byte("1\n")) {
		t.Errorf("a is %+v, %v", e, err)
	}
	f.remove("a")
	if rec = f.save(Request{Paths: []string{"a"}}); rec.FilesChanged != 1 || rec.LinesRemoved != 1 {
		t.Errorf("hint at a removed file: %+v", rec)
	}
}

// What is captured again is no longer listed as left out, also where only some
// paths were looked at: else what an agent makes there would count as the user's.
func TestHintsAtIgnoreFiles(t *testing.T) {
	for _, how := range []string{"hinted", "rewound"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.write(".gitignore", "out/\n*.log\n", "out/x", "0\n", "x.log", "0\n", "gone.log", "0\n")
			testenv.Mkfifo(t, f.path("fifo"), 0o644)
			var c *Record
			if how == "hinted" {
				f.save(Request{})
				f.remove("gone.log")
				f.write(".gitignore", "\n")
				c = f.save(Request{Paths: []string{f.path(".gitignore")}})
			} else {
				f.remove(".gitignore")
				first := f.before("c", 0)
				f.write(".gitignore", "out/\n*.log\n")
				f.after("c", 0)
				c = f.rewind(RewindRequest{To: first.ID}).Record
			}
			skipped, err := f.w.s.NotCaptured(t.Context(), c)
			must(t, err)
			if len(skipped) != 1 || skipped[0].Path != "fifo" {
				t.Errorf("not captured: %v", skipped)
			}
			f.before("c", 1)
			f.write("out/made", "1\n")
			f.after("c", 1)
			same(t, "plan", lines(f.plan(RewindRequest{To: c.ID, Conversation: "c"})), []string{"delete out/made"})
		})
	}
}

// Order follows numbers, whatever the clock does.
func TestClockGoesBack(t *testing.T) {
	f := newFixture(t)
	c := newClock()
	f.opts.Now = c.Now
	f.reopen()
	f.write("a", "0\n")
	first := f.before("c", 1)
	old := testenv.Snapshot(t, f.dir)
	last := first.ID
	for i := range 5 {
		c.advance(-time.Hour)
		f.write("a", strings.Repeat("x", i+1))
		rec := f.after("c", uint64(i+1))
		if rec.ID <= last {
			t.Fatalf("id %s after %s", rec.ID, last)
		}
		last = rec.ID
	}
	f.rewind(RewindRequest{To: first.ID})
	f.expect(old)
	must(t, undo(f))
	if f.read("a") != "xxxxx" {
		t.Errorf("after undo: %q", f.read("a"))
	}
}

func TestResolve(t *testing.T) {
	f := newFixture(t)
	c := newClock()
	f.opts.Now = c.Now
	f.reopen()
	f.write("a", "0\n")
	b1 := f.before("c", 1)
	c.advance(10 * time.Minute)
	a1 := f.after("c", 1)
	c.advance(10 * time.Minute)
	b2 := f.before("c", 2)
	c.advance(5 * time.Minute)
	a2 := f.after("c", 2)
	c.advance(5 * time.Minute)
	must(t, f.w.s.Pin(t.Context(), "good: %one", a1.ID, "me"))
	tests := []struct {
		ref  string
		want *Record
	}{
		{a1.ID, a1}, {strings.ToUpper(a1.ID), a1}, {a2.ID[:len(a2.ID)-2], a2}, {"c1", b1}, {"C4", a2},
		{"turn:1", a1}, {"before:turn:1", b1}, {"before:turn:2", b2}, {"before:turn:3", a2}, {"turn:2", a2},
		{"c-m1", a1}, {"before:c-m1", b1}, {"after:c-m2", a2}, {"pin:good: %one", a1},
		{"@{0s}", a2}, {"@{6m}", b2}, {"@{11m}", a1}, {"@{30m}", b1}, {"@{14:20}", b2}, {"@{14:10}", a1}, {"@{14:19:59}", a1},
		{"@{2026-03-14 14:12}", a1}, {"@{2026-03-14T14:26:00Z}", a2},
	}
	for _, tt := range tests {
		got, err := f.w.Resolve(t.Context(), tt.ref, "")
		if err != nil || got.ID != tt.want.ID {
			t.Errorf("%s: %v, %v; want %s", tt.ref, got, err, tt.want.Name())
		}
	}
	if got, err := f.w.Resolve(t.Context(), "@", ""); got != nil || err != nil {
		t.Errorf("@: %v, %v", got, err)
	}
	for _, ref := range []string{"turn:7", "nothing", "pin:none", "c9", "@{2h}", "0000", "before:c-m9"} {
		if _, err := f.w.Resolve(t.Context(), ref, ""); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", ref, err)
		}
	}
	for _, ref := range []string{"", "turn:x", "@{5", "@{yesterday}"} {
		if _, err := f.w.Resolve(t.Context(), ref, ""); !errors.Is(err, ErrBadRef) {
			t.Errorf("%q: %v, want ErrBadRef", ref, err)
		}
	}
	var ambiguous *AmbiguousError
	if _, err := f.w.Resolve(t.Context(), a1.ID[:3], ""); !errors.As(err, &ambiguous) || len(ambiguous.Candidates) != 4 {
		t.Errorf("short prefix: %v", err)
	}
	must(t, f.w.s.Unpin(t.Context(), f.w.ID(), "good: %one", "me"))
	if _, err := f.w.Resolve(t.Context(), "pin:good: %one", ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("after unpin: %v", err)
	}
}

// A home directory is refused, and a link to a workspace is the workspace.
func TestOpen(t *testing.T) {
	f := newFixture(t)
	setHome := func(dir string) {
		t.Setenv("HOME", dir)
		t.Setenv("USERPROFILE", dir) // on Windows
	}
	setHome(f.dir)
	if _, err := New(f.blobs, f.rows, nil).Open(t.Context(), f.dir); !errors.Is(err, workspace.ErrRootRefused) {
		t.Errorf("home directory: %v", err)
	}
	if _, err := New(f.blobs, f.rows, &Options{Force: true}).Open(t.Context(), f.dir); err != nil {
		t.Errorf("forced: %v", err)
	}
	setHome("/nonexistent")
	link := f.dir
	if testenv.Links(t) {
		link = testenv.TempDir(t) + "/link"
		must(t, os.Symlink(f.dir, link))
	}
	w, err := New(f.blobs, f.rows, nil).Open(t.Context(), link)
	if err != nil || w.ID() != f.w.ID() {
		t.Errorf("by a link: %v, %v", w, err)
	}
	if _, err := New(f.blobs, f.rows, nil).Open(t.Context(), f.dir+"/none"); err == nil {
		t.Error("a missing directory was opened")
	}
	for _, index := range []string{f.path("store/workspaces"), f.dir, filepath.Join(link, "store")} {
		s := New(f.blobs, f.rows, &Options{IndexDir: index, Force: true})
		if _, err := s.Open(t.Context(), f.dir); !errors.Is(err, workspace.ErrRootRefused) {
			t.Errorf("index in %s: %v", index, err)
		}
	}
	f.write("store/objects/ab", "1")
	for _, inside := range []string{"store", "store/objects"} {
		s := New(f.blobs, f.rows, &Options{StoreDir: filepath.Join(link, "store"), Force: true})
		if _, err := s.Open(t.Context(), f.path(inside)); !errors.Is(err, workspace.ErrRootRefused) {
			t.Errorf("%s, which is in the store: %v", inside, err)
		}
	}
	if _, err := New(f.blobs, f.rows, &Options{IndexDir: f.dir + "-index"}).Open(t.Context(), f.dir); err != nil {
		t.Errorf("index beside it: %v", err)
	}
}

// Captures and rewinds of several handles of one workspace wait for each other.
func TestManyAtOnce(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0\n")
	first := f.save(Request{Conversation: "c"})
	var wg sync.WaitGroup
	for range 4 {
		w, err := New(f.blobs, f.rows, &f.opts).Open(t.Context(), f.dir)
		must(t, err)
		wg.Go(func() {
			for i := range 8 {
				var err error
				if i%2 == 0 {
					_, err = w.Checkpoint(t.Context(), Request{Conversation: "c"})
				} else {
					_, err = w.Rewind(t.Context(), RewindRequest{To: first.ID}, "")
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 8 {
				if _, err := w.Present(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := uint64(0)
	for rec, err := range f.w.List(t.Context(), nil) {
		must(t, err)
		n = max(n, rec.Number)
	}
	if want := uint64(1 + 4*4 + 4*4*2); n != want {
		t.Errorf("%d checkpoints, want %d", n, want)
	}
	f.opts.LockWait = 10 * time.Millisecond
	f.opts.Command = "stet rewind"
	f.reopen()
	_, leave, err := f.w.enter(t.Context())
	must(t, err)
	defer leave()
	other, err := New(f.blobs, f.rows, &f.opts).Open(t.Context(), f.dir)
	must(t, err)
	_, err = other.Checkpoint(t.Context(), Request{})
	if by := fmt.Sprintf("stet rewind (process %d) has used it since", os.Getpid()); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), by) {
		t.Errorf("while another works: %v, want ErrBusy by %q", err, by)
	}
	if _, err := other.Present(t.Context()); err != nil {
		t.Errorf("a look while another works: %v", err)
	}
}

// A busy workspace names no process that does not hold it.
func TestBusyNamesOnlyTheHolder(t *testing.T) {
	f := newFixture(t)
	path := f.w.s.file(f.w.id, ".lock")
	_, leave, err := f.w.enter(t.Context())
	must(t, err)
	f.opts.LockWait = time.Millisecond
	for _, left := range []string{"", "{", `{"PID":1,"Start":1,"Boot":"an earlier one","Command":"stet run"}`} {
		must(t, os.WriteFile(path, []byte(left), 0o600))
		if _, err := New(f.blobs, f.rows, &f.opts).lock(t.Context(), f.w.id); err != ErrBusy {
			t.Errorf("with %q in the lock: %v, want ErrBusy and nothing else", left, err)
		}
	}
	leave()
	if data, err := os.ReadFile(path); err != nil || len(data) > 0 {
		t.Errorf("a free lock holds %q, %v", data, err)
	}
}

// A record of a newer format is refused.
func TestNewerFormat(t *testing.T) {
	f := newFixture(t)
	rec := f.save(Request{})
	must(t, f.setRow(rec.ID, []byte{0x08, 99}))
	if _, err := f.w.s.Get(t.Context(), rec.ID); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("newer: %v", err)
	}
	must(t, f.setRow(rec.ID, []byte{0xff}))
	if _, err := f.w.Checkpoint(t.Context(), Request{}); !errors.Is(err, ErrBadRecord) {
		t.Errorf("damaged: %v", err)
	}
}

// A lost index costs time, and nothing else: ignored files that an agent touched
// stay captured.
func TestLostIndexForgetsNothing(t *testing.T) {
	f := newFixture(t)
	f.write(".gitignore", "out/\n*.log\n", "a.txt", "a\n", "out/made", "made\n", "out/other", "other\n", "run.log", "log\n", "other.log", "other\n")
	first := f.save(Request{Touched: []string{"out/made", "run.log"}})
	must(t, os.RemoveAll(f.opts.IndexDir))
	f.reopen()
	f.write("a.txt", "aa\n")
	present, err := f.w.Present(t.Context())
	must(t, err)
	second := f.save(Request{})
	if present.Tree != second.Tree {
		t.Error("the present is not what a checkpoint has")
	}
	changes, err := workspace.Diff(t.Context(), f.blobs, first.Tree, second.Tree)
	must(t, err)
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	same(t, "changed", paths, []string{"a.txt"})
}

// A plan stores what nothing refers to yet, and the index remembers it. If a
// collector takes a part of it, the next scan reads that again.
func TestCollectorTookWhatTheIndexPromised(t *testing.T) {
	for name, next := range map[string]func(f *fixture, first *Record) *Record{
		"checkpoint": func(f *fixture, _ *Record) *Record { return f.save(Request{}) },
		"rewind": func(f *fixture, first *Record) *Record {
			return f.rewind(RewindRequest{To: first.ID, Exact: true}).Saved
		},
		"plan": func(f *fixture, first *Record) *Record {
			same(f.t, "plan", lines(f.plan(RewindRequest{To: first.ID, Exact: true})), []string{"restore d/b.txt"})
			return f.save(Request{})
		},
		"present": func(f *fixture, _ *Record) *Record {
			res, err := f.w.Present(f.t.Context())
			must(f.t, err)
			return &Record{Tree: res.Tree}
		},
	} {
		for i, reopen := range []bool{false, true, false, true} {
			f := newFixture(t)
			f.write("a.txt", "a\n", "d/b.txt", "b\n")
			first := f.save(Request{})
			f.write("d/b.txt", "changed\n")
			p := f.plan(RewindRequest{To: first.ID})
			lost := []byte("changed\n")
			if i >= 2 {
				e, err := workspace.Lookup(t.Context(), f.blobs, p.present, "d")
				must(t, err)
				lost, err = f.blobs.Get(t.Context(), e.ID)
				must(t, err)
			}
			f.lose(lost)
			if reopen {
				f.reopen()
			}
			rec := next(f, first)
			if problems, err := workspace.Verify(t.Context(), f.blobs, rec.Tree, true); err != nil || len(problems) > 0 {
				t.Errorf("%s: tree: %v, %v", name, problems, err)
			}
		}
	}
}

// lose removes a content from the store, as a collector would.
func (f *fixture) lose(content []byte) {
	f.t.Helper()
	generation, err := f.memory.Begin(f.t.Context())
	must(f.t, err)
	gone := blob.Sum(content)
	swept, err := f.memory.Sweep(f.t.Context(), generation, blob.SweepOptions{Live: func(id blob.ID) bool { return id != gone }})
	must(f.t, err)
	if swept.Removed != 1 {
		f.t.Fatalf("%d blobs removed", swept.Removed)
	}
}
