package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

// beside returns a fixture of another workspace in the same store.
func (f *fixture) beside() *fixture {
	f.t.Helper()
	other := newFixture(f.t)
	other.blobs, other.rows, other.opts, other.memory = f.blobs, f.rows, f.opts, nil
	other.reopen()
	return other
}

// pinned spells the pins of the store: "works=ID", in order.
func (f *fixture) pinned() []string {
	f.t.Helper()
	var out []string
	for pin, err := range f.w.s.Pins(f.t.Context()) {
		must(f.t, err)
		rec, err := f.w.s.Get(f.t.Context(), pin.Checkpoint)
		must(f.t, err)
		if rec.Workspace != pin.Workspace {
			f.t.Errorf("pin %s belongs to %s, and its checkpoint to %s", pin.Name, pin.Workspace, rec.Workspace)
		}
		out = append(out, pin.Name+"="+pin.Checkpoint)
	}
	slices.Sort(out)
	return out
}

func (f *fixture) wantPins(want ...string) {
	f.t.Helper()
	slices.Sort(want)
	if got := f.pinned(); !slices.Equal(got, want) {
		f.t.Errorf("pins: %v, want %v", got, want)
	}
}

// wantPin checks what a name means in the workspace.
func (f *fixture) wantPin(name, id string) {
	f.t.Helper()
	rec, err := f.w.Resolve(f.t.Context(), "pin:"+name, "")
	if err != nil || rec.ID != id {
		f.t.Errorf("pin:%s in %s: %v, %v; want %s", name, f.dir, rec, err, id)
	}
}

// Two workspaces have the same name, and neither changes the other's.
func TestPinsBelongToAWorkspace(t *testing.T) {
	a := newFixture(t)
	b := a.beside()
	c := a.beside()
	first, second, other := a.save(Request{}), a.save(Request{Label: "two"}), b.save(Request{})
	ctx, service := t.Context(), a.w.s
	must(t, service.Pin(ctx, "works", first.ID, "me"))
	must(t, service.Pin(ctx, "works", other.ID, "me"))
	must(t, service.Pin(ctx, "works", second.ID, "me"))
	a.wantPins("works="+second.ID, "works="+other.ID)
	a.wantPin("works", second.ID)
	b.wantPin("works", other.ID)

	// Where the name means several, or must belong to a workspace, nothing is guessed.
	var several *AmbiguousError
	for _, workspace := range []string{"", c.w.ID()} {
		if _, err := service.Resolve(ctx, workspace, "", "pin:works"); !errors.As(err, &several) || len(several.Candidates) != 2 {
			t.Errorf("pin:works in %q: %v, want an *AmbiguousError of two", workspace, err)
		}
	}
	if err := service.Unpin(ctx, "", "works", "me"); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("unpin without a workspace: %v, want ErrAmbiguous", err)
	}
	if err := service.Unpin(ctx, c.w.ID(), "works", "me"); !errors.Is(err, ErrNotFound) {
		t.Errorf("unpin in a third workspace: %v, want ErrNotFound", err)
	}
	must(t, service.Unpin(ctx, a.w.ID(), "works", "me"))
	a.wantPins("works=" + other.ID)
	c.wantPin("works", other.ID) // the only one of all
	must(t, service.Unpin(ctx, "", "works", "me"))
	a.wantPins()
}

// A name from a release that had one for all workspaces belongs to the workspace of its
// checkpoint. The bytes are those of that release.
func TestPinsOfEarlierReleases(t *testing.T) {
	a := newFixture(t)
	b := a.beside()
	first, second, other := a.save(Request{}), a.save(Request{Label: "two"}), b.save(Request{})
	ctx, service := t.Context(), a.w.s
	shared := kv.Set{Key: "stet:checkpoint-pin:works", Value: []byte("\b\x01\x12\x05works\x1a\x1a" + first.ID + "\x20\x01")}
	set := func() { t.Helper(); must(t, a.rows.Commit(ctx, &kv.Batch{Set: []kv.Set{shared}})) }

	set()
	a.wantPins("works=" + first.ID)
	a.wantPin("works", first.ID)
	must(t, service.Pin(ctx, "works", other.ID, "me"))
	a.wantPins("works="+first.ID, "works="+other.ID)
	a.wantPin("works", first.ID)
	b.wantPin("works", other.ID)

	must(t, service.Pin(ctx, "works", second.ID, "me"))
	a.wantPins("works="+second.ID, "works="+other.ID)
	if _, err := a.rows.Get(ctx, shared.Key); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("the row of the earlier release: %v, want ErrNotFound", err)
	}
	set() // a store of an earlier release brings it again
	a.wantPins("works="+second.ID, "works="+other.ID)
	must(t, service.Unpin(ctx, a.w.ID(), "works", "me"))
	a.wantPins("works=" + other.ID)
	set()
	must(t, service.Unpin(ctx, a.w.ID(), "works", "me"))
	a.wantPins("works=" + other.ID)
}

// A name of a pin is one line and no other reference.
func TestNamesOfPins(t *testing.T) {
	f := newFixture(t)
	rec := f.save(Request{})
	for _, name := range []string{"", "a\nb", "a\tb", "\x1b[2J", "a\u2028b", "a\xff", "@", "@{10m}", "c1", "C1", "i7", "turn:1", "before:turn:1", "after:x", "pin:x"} {
		if err := f.service().Pin(t.Context(), name, rec.ID, "me"); !errors.Is(err, ErrBadRef) {
			t.Errorf("%q: %v, want ErrBadRef", name, err)
		}
	}
	for _, name := range []string{"works", "c", "c1x", "car", "i", "index 2", "a/b", "état", "turn", "10"} {
		must(t, f.service().Pin(t.Context(), name, rec.ID, "me"))
	}
}

// The names of a workspace follow its checkpoints to another directory.
func TestMoveTakesPinsAlong(t *testing.T) {
	a := newFixture(t)
	b := a.beside()
	first, other := a.save(Request{}), b.save(Request{})
	ctx, service := t.Context(), a.w.s
	must(t, service.Pin(ctx, "works", first.ID, "me"))
	must(t, service.Pin(ctx, "mine", first.ID, "me"))
	must(t, service.Pin(ctx, "works", other.ID, "me"))
	if _, err := service.Move(ctx, a.dir, b.dir, true); err != nil {
		t.Fatal(err)
	}
	a.reopen()
	b.reopen()
	a.wantPins("mine="+first.ID, "works="+first.ID, "works="+other.ID)
	a.wantPin("works", other.ID)
	b.wantPin("works", first.ID)
	b.wantPin("mine", first.ID)

	moved := filepath.Join(testenv.TempDir(t), "moved")
	must(t, os.Rename(b.dir, moved))
	t.Cleanup(func() { must(t, os.MkdirAll(b.dir, 0o755)) })
	if _, err := service.Move(ctx, b.dir, moved, false); err != nil {
		t.Fatal(err)
	}
	a.wantPins("mine="+first.ID, "works="+first.ID, "works="+other.ID)
	if _, err := a.rows.Get(ctx, keyspace.CheckpointPin("mine", WorkspaceID(moved))); err != nil {
		t.Errorf("the name under the new directory: %v", err)
	}
}
