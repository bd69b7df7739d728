package stet

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/upkeep"
)

// However long an agent works, checkpoints take no more room on the disk than the
// budget, what cannot be forgotten, and the room that the database itself needs.
func TestCheckpointsStayWithinABudget(t *testing.T) {
	const (
		budget = 4 << 20
		large  = 300 << 10 // kept as a file of its own
		small  = 40 << 10
		log    = 8 << 20 // of the database, while it is open
		slack  = 3 << 20 // free pages that it keeps, and all else
	)
	ctx, dir, work := t.Context(), t.TempDir(), t.TempDir()
	db, err := Open(ctx, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			db.Close()
		}
	}()
	now := time.Now()
	opts := db.CheckpointOptions()
	opts.Now = func() time.Time { return now }
	service := checkpoint.New(db.Blobs(), db.Rows(), &opts)
	w, err := service.Open(ctx, work)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for round := range testenv.Sizes(20, 60, 2000) {
		write(t, filepath.Join(work, "large.bin"), large)
		for i := range 5 {
			write(t, filepath.Join(work, fmt.Sprintf("small%d.bin", i)), small)
		}
		if _, err := w.Checkpoint(ctx, checkpoint.Request{}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Hour)
		if round%10 == 9 {
			forget(ctx, t, db, service, checkpoint.Policy{MaxBytes: budget}, now)
			if got := onDisk(t, dir); got > budget+log+slack {
				t.Fatalf("round %d: %d bytes on the disk with a budget of %d", round, got, budget)
			}
		}
	}
	kept := 0
	for rec, err := range w.List(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if kept++; kept == 2 {
			if _, err := w.Rewind(ctx, checkpoint.RewindRequest{To: rec.ID}, ""); err != nil {
				t.Errorf("rewind: %v", err)
			}
		}
	}
	if want := budget/(large+5*small) - 1; kept < want {
		t.Errorf("only %d checkpoints are left; %d fit", kept, want)
	}
	report, err := db.Check(ctx, &upkeep.CheckOptions{ReadData: true})
	if err != nil || len(report.Damage) > 0 {
		t.Errorf("damage: %v, %v", report, err)
	}
	closed = true
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := onDisk(t, dir); got > budget+slack {
		t.Errorf("%d bytes on the disk with a budget of %d", got, budget)
	}
}

// forget applies a policy, collects and gives room back, as 'stet gc' does.
func forget(ctx context.Context, t *testing.T, db *DB, service *checkpoint.Service, p checkpoint.Policy, now time.Time) {
	t.Helper()
	all, err := service.Retainable(ctx, db)
	if err == nil {
		_, err = service.ApplyRetention(ctx, checkpoint.PlanRetention(all, p, now), "tester")
	}
	if err == nil {
		_, err = db.Collect(ctx, &upkeep.CollectOptions{Grace: -1})
	}
	if err == nil {
		err = db.Compact(ctx, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// write makes a file that cannot be compressed.
func write(t *testing.T, path string, size int) {
	t.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func onDisk(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
