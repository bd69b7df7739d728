package attempt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/attempt"
	"github.com/stet-dev/stet/internal/room"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
	"github.com/stet-dev/stet/workspace"
)

// house is a store with a workspace.
type house struct {
	t     *testing.T
	blobs blob.Store
	rows  kv.Store
	keep  attempt.Keeper
	space *checkpoint.Workspace
	now   time.Time
}

func newHouse(t *testing.T) *house {
	mem := memblob.New()
	h := &house{t: t, blobs: mem, rows: memkv.New(mem), now: time.Now()}
	h.keep.Conversations = conversation.New(h.blobs, h.rows, nil)
	h.keep.Checkpoints = checkpoint.New(h.blobs, h.rows, &checkpoint.Options{Now: func() time.Time { return h.now }})
	var err error
	if h.space, err = h.keep.Checkpoints.Open(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.space.Close() })
	return h
}

func (h *house) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) checkpoint() *checkpoint.Record {
	h.t.Helper()
	res, err := h.space.Checkpoint(h.t.Context(), checkpoint.Request{})
	h.check(err)
	return res.Record
}

// tree captures a directory with all that is in it.
func (h *house) tree(dir string) blob.ID {
	h.t.Helper()
	res, err := workspace.Scan(h.t.Context(), h.blobs, dir, nil, nil)
	h.check(err)
	return res.Tree
}

// branch runs fn as an attempt in a copy.
func (h *house) branch(base *checkpoint.Record, try string, number int, fn func(dir string)) *attempt.Run {
	h.t.Helper()
	ctx := h.t.Context()
	rooms, err := room.Open(h.blobs, room.Options{Dir: filepath.Join(h.t.TempDir(), "rooms"), Workspace: h.space.Path()})
	h.check(err)
	defer rooms.Close()
	in, err := rooms.Make(ctx, base.Tree)
	h.check(err)
	run, err := attempt.Begin(ctx, h.keep, attempt.Plan{
		Try: try, Number: number, Base: base, Workspace: h.space.Path(), Command: "agent", Agent: "agent", Author: "tester",
	})
	h.check(err)
	h.check(run.Capture(ctx, base.Tree)) // nothing new
	fn(in.Path())
	score := float64(number)
	h.check(run.End(ctx, attempt.Result{Tree: h.tree(in.Path()), Exit: number, Score: &score, Duration: 1500 * time.Millisecond, Files: 3, Added: 2, Removed: 1, Words: "talk"}))
	return run
}

func (h *house) write(dir, path, content string) {
	h.t.Helper()
	full := filepath.Join(dir, path)
	h.check(os.MkdirAll(filepath.Dir(full), 0o755))
	h.check(os.WriteFile(full, []byte(content), 0o644))
}

// The workspace's own history stays as it is, and the branch has its checkpoints and result.
func TestBranchBesideTheHistory(t *testing.T) {
	h := newHouse(t)
	h.write(h.space.Path(), "a", "1\n")
	base := h.checkpoint()
	for n := 1; n <= 2; n++ {
		h.branch(base, "x", n, func(dir string) { h.write(dir, "b", fmt.Sprint(n)) })
	}
	h.branch(base, "y", 1, func(string) {})
	next := h.checkpoint()
	if next.Parent != base.ID || next.Number != base.Number+1 || next.FilesChanged != 0 {
		t.Errorf("the next checkpoint is %+v", next)
	}
	list, err := attempt.List(t.Context(), h.keep.Conversations, h.space.Path())
	h.check(err)
	var ids []string
	for _, one := range list {
		ids = append(ids, one.ID)
	}
	if fmt.Sprint(ids) != "[try-y-1 try-x-1 try-x-2]" && fmt.Sprint(ids) != "[try-x-1 try-x-2 try-y-1]" { // they may begin in one millisecond
		t.Errorf("attempts %v", ids)
	}
	two, err := attempt.Get(t.Context(), h.keep.Conversations, "try-x-2")
	h.check(err)
	if !two.Ended || two.Exit != 2 || *two.Score != 2 || two.Duration != 1500*time.Millisecond || two.Files != 3 || two.Added != 2 || two.Removed != 1 || two.Words != "talk" || two.Base != base.ID {
		t.Errorf("attempt %+v", two)
	}
	first, last, err := attempt.Ends(t.Context(), h.keep.Checkpoints, "try-x-2")
	h.check(err)
	if first.Tree != base.Tree || last.Tree == base.Tree || first.Name() != "i1" || last.Name() != "i2" || last.Root.IsZero() {
		t.Errorf("ends %+v, %+v", first, last)
	}
	if _, err := h.keep.Conversations.Create(t.Context(), conversation.Info{ID: "other"}); err != nil {
		t.Fatal(err)
	}
	if _, err := attempt.Get(t.Context(), h.keep.Conversations, "other"); !errors.Is(err, attempt.ErrNotOne) {
		t.Errorf("another conversation: %v", err)
	}
}

// An attempt whose process was killed can be read.
func TestKilledAttempt(t *testing.T) {
	h := newHouse(t)
	h.write(h.space.Path(), "a", "1\n")
	base := h.checkpoint()
	run, err := attempt.Begin(t.Context(), h.keep, attempt.Plan{Try: "x", Number: 1, Base: base, Workspace: h.space.Path(), Command: "agent"})
	h.check(err)
	one, err := attempt.Get(t.Context(), h.keep.Conversations, run.ID())
	if err != nil || one.Ended {
		t.Errorf("attempt %+v, %v", one, err)
	}
	first, last, err := attempt.Ends(t.Context(), h.keep.Checkpoints, run.ID())
	if err != nil || first.ID != last.ID || first.Tree != base.Tree {
		t.Errorf("ends %+v, %+v, %v", first, last, err)
	}
}

// A policy removes checkpoints of branches, while those of another program stay with their
// conversation.
func TestRetentionRemovesBranches(t *testing.T) {
	h := newHouse(t)
	h.write(h.space.Path(), "a", "1\n")
	base := h.checkpoint()
	run := h.branch(base, "x", 1, func(dir string) { h.write(dir, "b", "2") })
	_, err := h.keep.Checkpoints.AddImported(t.Context(), run.ID(), h.space.Path(), "tester", []checkpoint.Imported{{Source: "elsewhere", Tree: base.Tree, Time: h.now}})
	h.check(err)
	h.now = h.now.Add(48 * time.Hour)
	all, err := h.keep.Checkpoints.Retainable(t.Context(), nil)
	h.check(err)
	plan := checkpoint.PlanRetention(all, checkpoint.Policy{MaxAge: 24 * time.Hour}, h.now)
	n, err := h.keep.Checkpoints.ApplyRetention(t.Context(), plan, "tester")
	if err != nil || n != 2 {
		t.Errorf("%d removed, %v; want the two of the branch", n, err)
	}
	if _, _, err := attempt.Ends(t.Context(), h.keep.Checkpoints, run.ID()); !errors.Is(err, attempt.ErrForgotten) {
		t.Errorf("ends: %v", err)
	}
}

// change makes random changes to a directory.
func (h *house) change(rng *rand.Rand, dir string, n int) {
	for range n {
		path := fmt.Sprintf("d%d/f%d", rng.IntN(3), rng.IntN(4))
		full := filepath.Join(dir, path)
		switch rng.IntN(6) {
		case 0:
			h.check(os.RemoveAll(full))
		case 1:
			h.check(os.RemoveAll(filepath.Dir(full)))
		case 2:
			h.check(os.RemoveAll(full))
			h.check(os.MkdirAll(filepath.Join(full, "in"), 0o755))
		case 3:
			h.check(os.RemoveAll(full))
			h.check(os.MkdirAll(filepath.Dir(full), 0o755))
			h.check(os.Symlink("target", full))
		default:
			h.check(os.RemoveAll(full))
			h.write(dir, path, fmt.Sprintf("line\n%d\nline\n", rng.IntN(100)))
			h.check(os.Chmod(full, os.FileMode(0o600|rng.IntN(2)*0o111)))
		}
	}
}

// To adopt and undo leaves every byte as it was, whatever was changed on both sides and
// whatever is chosen about conflicts.
func TestAdoptThenUndoIsIdentical(t *testing.T) {
	choices := []checkpoint.Choice{checkpoint.KeepMine, checkpoint.Theirs, checkpoint.Merge, checkpoint.MergeMarkers}
	adopted := 0
	for seed := range uint64(24) {
		h := newHouse(t)
		rng := rand.New(rand.NewPCG(seed, 7))
		h.change(rng, h.space.Path(), 12)
		base := h.checkpoint()
		run := h.branch(base, "x", 1, func(dir string) { h.change(rng, dir, 6) })
		h.change(rng, h.space.Path(), rng.IntN(4)) // by the user, meanwhile
		before := h.tree(h.space.Path())
		first, last, err := attempt.Ends(t.Context(), h.keep.Checkpoints, run.ID())
		h.check(err)
		changes, err := workspace.Diff(t.Context(), h.blobs, first.Tree, last.Tree)
		h.check(err)
		req := checkpoint.RewindRequest{
			Conversation: run.ID(), Choice: choices[seed%4], Exchange: &checkpoint.Exchange{To: last.Tree, Last: first.Tree, Adopts: run.ID()},
		}
		for _, c := range changes {
			req.Exchange.Paths = append(req.Exchange.Paths, c.Path)
		}
		plan, err := h.space.Plan(t.Context(), req)
		h.check(err)
		done, err := h.space.Rewind(t.Context(), plan.Request(), plan.Token)
		h.check(err)
		if h.tree(h.space.Path()) != done.Record.Tree {
			t.Fatalf("seed %d: the tree is not what was recorded", seed)
		}
		if done.Plan.Changes() == 0 {
			continue
		}
		adopted++
		if before == base.Tree && done.Record.Tree != last.Tree {
			t.Fatalf("seed %d: nothing was changed meanwhile, and the adopted tree is not the branch's", seed)
		}
		_, err = h.space.Undo(t.Context(), nil)
		h.check(err)
		if after := h.tree(h.space.Path()); after != before {
			diff, _ := workspace.Diff(t.Context(), h.blobs, before, after)
			t.Fatalf("seed %d: after the undo %v differ", seed, diff)
		}
	}
	if adopted < 12 {
		t.Errorf("only %d adoptions changed something", adopted)
	}
}
