package checkpoint

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
)

// received marks a checkpoint as one of another store.
func (f *fixture) received(rec *Record) {
	f.t.Helper()
	row, err := f.rows.Get(f.t.Context(), keyspace.Checkpoint(rec.ID))
	must(f.t, err)
	set, err := MarkReceived(kv.Set{Key: row.Key, Value: row.Value})
	must(f.t, err)
	must(f.t, f.setRow(rec.ID, set.Value))
}

func (f *fixture) mode(name string) fs.FileMode {
	f.t.Helper()
	info, err := os.Lstat(f.path(name))
	must(f.t, err)
	return info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}

// A checkpoint of another store brings contents and permissions, and none of the bits
// that give rights to all who run a file. Each path that lacks one is named.
func TestBitsFromElsewhereAreMasked(t *testing.T) {
	testenv.NeedModes(t)
	type modes map[string]fs.FileMode
	const sticky, setuid = fs.ModeSticky | 0o755, fs.ModeSetuid | 0o755
	want := modes{"d": sticky, "gone": setuid, "kept": setuid, "bits": setuid, "changed": setuid}
	for name, elsewhere := range map[string]bool{"captured here": false, "of another store": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.write("d/a", "a\n", "gone", "gone\n", "kept", "kept\n", "bits", "bits\n", "changed", "old\n", "plain", "old\n")
			for path, mode := range want {
				must(t, os.Chmod(f.path(path), mode))
			}
			target := f.save(Request{})
			f.write("changed", "new\n", "plain", "new\n")
			must(t, os.Chmod(f.path("changed"), setuid)) // another content with the bit
			must(t, os.Chmod(f.path("bits"), 0o755))
			f.remove("d", "gone")
			f.save(Request{})
			masked, want := []string(nil), want
			if elsewhere {
				f.received(target)
				masked = []string{"bits", "changed", "d", "gone"}
				want = modes{"d": 0o755, "gone": 0o755, "kept": setuid, "bits": 0o755, "changed": 0o755}
			}

			plan := f.plan(RewindRequest{To: target.ID, Exact: true})
			done, err := f.w.Rewind(t.Context(), plan.Request(), plan.Token)
			must(t, err)
			var left []string
			for _, a := range done.Plan.Left() {
				if a.Why != WhyMasked || a.Reason == "" {
					t.Errorf("%s is left: %s %q", a.Path, a.Why, a.Reason)
				}
				left = append(left, a.Path)
			}
			same(t, "named", left, masked)
			for path, mode := range want {
				if got := f.mode(path); got != mode {
					t.Errorf("%s has mode %v, want %v", path, got, mode)
				}
			}
			if got := testenv.Snapshot(t, f.dir)["changed"]; got[len(got)-4:] != "old\n" {
				t.Errorf("changed holds %q", got)
			}

			// A second one has nothing to do, and says so again.
			again := f.plan(RewindRequest{To: target.ID, Exact: true})
			if again.Changes() != 0 || again.Partial() != elsewhere {
				t.Errorf("a second plan changes %d and is partial: %v", again.Changes(), again.Partial())
			}
			// What was here before comes back with its bits.
			_, err = f.w.Undo(t.Context(), nil)
			must(t, err)
			if got := f.mode("changed"); got != setuid {
				t.Errorf("after the undo the mode is %v, want %v", got, setuid)
			}
		})
	}
}
