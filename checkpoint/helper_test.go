package checkpoint

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
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
	f := &fixture{t: t, dir: testenv.TempDir(t), blobs: blob.Checked(blobs), rows: memkv.New(blobs), memory: blobs}
	f.opts.IndexDir = testenv.TempDir(t)
	f.reopen()
	return f
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

func (f *fixture) expect(want map[string]string) {
	f.t.Helper()
	if d := testenv.Differ(testenv.Snapshot(f.t, f.dir), want); len(d) > 0 {
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

func (r refusing) Rewind(context.Context, string, blob.ID, blob.ID, string, func(*kv.Batch) error) error {
	return r.err
}
