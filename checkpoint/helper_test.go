package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// fixture is a workspace over a store in memory.
type fixture struct {
	t     testing.TB
	dir   string
	blobs blob.Store
	rows  kv.Store
	opts  Options
	w     *Workspace

	memory *memblob.Store // below blobs, or nil
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	blobs := memblob.New()
	f := &fixture{t: t, dir: tempDir(t), blobs: blob.Checked(blobs), rows: memkv.New(blobs), memory: blobs}
	f.opts.IndexDir = tempDir(t)
	f.reopen()
	return f
}

// tempDir returns a directory that goes with the test, in memory where there is
// a place for it: these tests sync thousands of files.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "stet-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// reopen opens the workspace as another process would.
func (f *fixture) reopen() {
	f.t.Helper()
	if err := f.tryReopen(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) tryReopen() error {
	if f.w != nil {
		if err := f.w.Close(); err != nil {
			return err
		}
		f.w = nil
	}
	w, err := New(f.blobs, f.rows, &f.opts).Open(f.t.Context(), f.dir)
	if err == nil {
		f.w = w
	}
	return err
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

// write makes files: name, content, name, content…
func (f *fixture) write(pairs ...string) {
	f.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		path := f.path(pairs[i])
		must(f.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(f.t, os.WriteFile(path, []byte(pairs[i+1]), 0o644))
	}
}

func (f *fixture) remove(names ...string) {
	f.t.Helper()
	for _, name := range names {
		must(f.t, os.RemoveAll(f.path(name)))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// save makes a checkpoint.
func (f *fixture) save(req Request) *Record {
	f.t.Helper()
	res, err := f.w.Checkpoint(f.t.Context(), req)
	must(f.t, err)
	must(f.t, res.IndexError)
	return res.Record
}

// before and after bracket a turn of a conversation.
func (f *fixture) before(conv string, turn uint64) *Record {
	return f.save(Request{Conversation: conv, Turn: turn, Side: Before, MessageID: fmt.Sprintf("%s-m%d", conv, turn), Auto: true})
}

func (f *fixture) after(conv string, turn uint64) *Record {
	return f.save(Request{Conversation: conv, Turn: turn, Side: After, MessageID: fmt.Sprintf("%s-m%d", conv, turn), Auto: true})
}

func (f *fixture) rewind(req RewindRequest) *Applied {
	f.t.Helper()
	done, err := f.w.Rewind(f.t.Context(), req, "")
	must(f.t, err)
	must(f.t, done.CleanupError)
	must(f.t, done.IndexError)
	return done
}

func (f *fixture) plan(req RewindRequest) *Plan {
	f.t.Helper()
	p, err := f.w.Plan(f.t.Context(), req)
	must(f.t, err)
	return p
}

// lines spells the actions of a plan: "restore a.txt".
func lines(p *Plan) []string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, string(a.Kind)+" "+a.Path)
	}
	return out
}

// snapshot describes everything below a directory, .git included: kinds, modes,
// contents, link targets. Times are left out.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		out[name] = text
		return nil
	})
	must(t, err)
	return out
}

// differ lists how two snapshots differ.
func differ(got, want map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; !ok {
			out = append(out, "missing "+name)
		} else if g != want[name] {
			out = append(out, fmt.Sprintf("%s is %.60q, want %.60q", name, g, want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			out = append(out, "extra "+name)
		}
	}
	return out
}

func (f *fixture) expect(want map[string]string) {
	f.t.Helper()
	if d := differ(snapshot(f.t, f.dir), want); len(d) > 0 {
		f.t.Fatalf("tree differs:\n%s", strings.Join(d, "\n"))
	}
}

// same compares two lists.
func same[T cmp.Ordered](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// clock is a time that tests move.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 3, 14, 14, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

// setRow overwrites the row of a checkpoint, as a hostile store would.
func (f *fixture) setRow(id string, data []byte) error {
	return f.rows.Commit(f.t.Context(), &kv.Batch{Set: []kv.Set{{Key: keyspace.Checkpoint(id), Value: data}}})
}

// setWorkspace overwrites the row of the workspace.
func (f *fixture) setWorkspace(st *state) error {
	data, err := marshal(st.row)
	if err != nil {
		return err
	}
	return f.rows.Commit(f.t.Context(), &kv.Batch{Set: []kv.Set{{Key: keyspace.Workspace(f.w.ID()), Value: data}}})
}

// dropCheckpoint removes a checkpoint, as a retention policy would.
func (f *fixture) dropCheckpoint(id string) error {
	return f.rows.Commit(f.t.Context(), &kv.Batch{Delete: []string{
		keyspace.Checkpoint(id), keyspace.WorkspaceCheckpoint(f.w.ID(), id),
	}})
}

// refusing is a keeper of conversations that moves none.
type refusing struct {
	Conversations
	err error
}

func (r refusing) Rewind(context.Context, string, blob.ID, string, func(*kv.Batch) error) error {
	return r.err
}
