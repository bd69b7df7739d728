package room_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/bisect"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/internal/room"
	"github.com/stet-dev/stet/workspace"
)

const benchFiles = 1000

// benchTree makes a workspace of 1,000 files and stores its tree.
func benchTree(b *testing.B) (dir string, db *stet.DB, tree blob.ID) {
	b.Helper()
	dir = filepath.Join(b.TempDir(), "shop")
	for i := range benchFiles {
		path := filepath.Join(dir, fmt.Sprintf("d%02d", i%20), fmt.Sprintf("f%04d.txt", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte(fmt.Sprintf("line of file %d\n", i)), 100), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	db, err := stet.Open(b.Context(), filepath.Join(b.TempDir(), "store"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	res, err := workspace.Scan(b.Context(), db.Blobs(), dir, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	return dir, db, res.Tree
}

func benchRooms(b *testing.B, db *stet.DB, dir string) *room.Rooms {
	b.Helper()
	rooms, err := room.Open(db.Blobs(), room.Options{Dir: filepath.Join(b.TempDir(), "rooms"), Workspace: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { rooms.Close() })
	return rooms
}

// took measures a function.
func took(b *testing.B, fn func() error) time.Duration {
	b.Helper()
	began := time.Now()
	if err := fn(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkRoom compares a room of 1,000 files with a work tree of git.
func BenchmarkRoom(b *testing.B) {
	if _, err := exec.LookPath("git"); err != nil {
		b.Skip(err)
	}
	dir, db, tree := benchTree(b)
	rooms := benchRooms(b, db, dir)
	repo := filepath.Join(b.TempDir(), "repo")
	git := func(args ...string) error {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w: %s", args, err, out)
		}
		return nil
	}
	if err := os.CopyFS(repo, os.DirFS(dir)); err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "all"}} {
		if err := git(args...); err != nil {
			b.Fatal(err)
		}
	}
	var ours, theirs time.Duration
	n := 0
	for b.Loop() {
		n++
		var made *room.Room
		ours += took(b, func() (err error) { made, err = rooms.Make(b.Context(), tree); return err })
		at := filepath.Join(b.TempDir(), fmt.Sprint("work", n))
		theirs += took(b, func() error { return git("worktree", "add", "-q", "--detach", at) })
		if err := made.Remove(); err != nil {
			b.Fatal(err)
		}
		if err := git("worktree", "remove", "--force", at); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(ours.Seconds()*1000/float64(n), "ms/room")
	b.ReportMetric(float64(ours)/float64(theirs), "x-git-worktree")
}

// BenchmarkBisect finds the turn that broke something among 1,000 turns in 1,000 files, and
// compares a step with a plain copy of the directory.
func BenchmarkBisect(b *testing.B) {
	dir, db, tree := benchTree(b)
	rooms := benchRooms(b, db, dir)
	const turns, broken = 1000, 777
	keys, trees := make([]string, turns), make([]blob.ID, turns)
	for i := range turns {
		text := fmt.Sprintf("turn %d\n", i)
		entry, err := workspace.PutFile(b.Context(), db.Blobs(), bytes.NewReader([]byte(text)))
		if err != nil {
			b.Fatal(err)
		}
		entry.Name, entry.Mode = "n", 0o644
		if tree, err = workspace.Edit(b.Context(), db.Blobs(), tree, map[string]*workspace.Entry{"n": &entry}); err != nil {
			b.Fatal(err)
		}
		keys[i], trees[i] = tree.String(), tree
	}
	var ours, plain time.Duration
	steps, n := 0, 0
	for b.Loop() {
		n++
		ours += took(b, func() error {
			found, err := bisect.Run(b.Context(), bisect.Options{Keys: keys, Jobs: 1}, func(ctx context.Context, i int) (bisect.Verdict, error) {
				return verdictIn(ctx, rooms, trees[i], broken)
			})
			if err == nil && found.Bad != broken {
				err = fmt.Errorf("found turn %d", found.Bad)
			}
			steps += found.Tests
			return err
		})
		at := filepath.Join(b.TempDir(), fmt.Sprint("copy", n))
		plain += took(b, func() error { return os.CopyFS(at, os.DirFS(dir)) })
	}
	step := float64(ours) / float64(steps)
	b.ReportMetric(step/1e6, "ms/step")
	b.ReportMetric(float64(steps)/float64(n), "steps")
	b.ReportMetric(step/(float64(plain)/float64(n)), "x-plain-copy")
}

// verdictIn makes a room and looks at the number of the turn in it.
func verdictIn(ctx context.Context, rooms *room.Rooms, tree blob.ID, broken int) (bisect.Verdict, error) {
	in, err := rooms.Make(ctx, tree)
	if err != nil {
		return 0, err
	}
	data, err := os.ReadFile(filepath.Join(in.Path(), "n"))
	if err != nil {
		return 0, err
	}
	turn := 0
	if _, err := fmt.Sscanf(string(data), "turn %d", &turn); err != nil {
		return 0, err
	}
	if err := in.Remove(); err != nil {
		return 0, err
	}
	if turn >= broken {
		return bisect.Bad, nil
	}
	return bisect.Good, nil
}
