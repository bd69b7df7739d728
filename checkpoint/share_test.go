package checkpoint

import (
	"fmt"
	"testing"
	"time"

	"github.com/stet-dev/stet/workspace"
)

func TestShareOfARound(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	week := 7 * 24 * time.Hour
	size := func(s workspace.Share) float64 { return float64(s.To-s.From) / (1 << 32) }
	for _, c := range []struct {
		what         string
		past         time.Duration
		files, bytes int64
		want         float64
	}{
		{"a seventh", 24 * time.Hour, 1000, 1 << 20, 1. / 7},
		{"an hour", time.Hour, 1000, 1 << 20, 1. / 168},
		{"many files", 24 * time.Hour, 1_000_000, 1 << 20, 0.004096},
		{"many bytes", 24 * time.Hour, 1000, 64 << 30, 1. / 1024},
		{"too soon", 30 * time.Second, 1000, 1 << 20, 0},
		{"a clock set back", -time.Hour, 1000, 1 << 20, 0},
	} {
		r := round{At: now.Add(-c.past).UnixMilli(), To: 0xf000_0000, Files: c.files, Bytes: c.bytes}
		got, next := r.share(now, week)
		if d := size(got) - c.want; d > 1e-6 || d < -1e-6 {
			t.Errorf("%s: a share of %f, want %f", c.what, size(got), c.want)
		}
		if next != nil && c.want > 0 && (got.From != r.To || next.To != got.To || next.At != now.UnixMilli()) {
			t.Errorf("%s: share %v, next %v", c.what, got, next)
		}
		if (next == nil) != (c.what == "too soon") {
			t.Errorf("%s: next is %v", c.what, next)
		}
	}
	if got, _ := (round{At: now.Add(-2 * week).UnixMilli()}).share(now, week); got.From != got.To || got.To == 0 {
		t.Errorf("after two weeks: %v, want the whole ring", got)
	}
}

// Checkpoints read every file again within the time that the options say, and find
// what left no trace.
func TestCheckpointsReadAllAgain(t *testing.T) {
	f := newFixture(t)
	clock := newClock()
	f.opts.Now, f.opts.RereadEvery = clock.Now, 10*time.Hour
	f.reopen()
	for i := range 50 {
		f.write(fmt.Sprintf("f%d", i), "was!\n")
	}
	f.save(Request{})
	for i := range 50 {
		f.hide(fmt.Sprintf("f%d", i), "was!\n", "now!\n")
	}
	found, read := uint64(0), int64(0)
	for range 20 {
		clock.advance(30 * time.Minute)
		res, err := f.w.Checkpoint(t.Context(), Request{})
		must(t, err)
		if res.Stats.Read > 20 {
			t.Errorf("one checkpoint read %d of 50 files", res.Stats.Read)
		}
		found, read = found+res.Record.FilesChanged, read+res.Stats.Read
	}
	if found != 50 || read < 50 || read > 55 {
		t.Errorf("found %d of 50 changes and read %d files", found, read)
	}
	f.hide("f1", "now!\n", "more\n")
	f.opts.RereadEvery = -1
	f.reopen()
	clock.advance(1000 * time.Hour)
	if rec := f.save(Request{}); rec.FilesChanged != 0 {
		t.Error("a file was read again although that is switched off")
	}
	f.opts.Scan.Full = true
	f.reopen()
	if rec := f.save(Request{}); rec.FilesChanged != 1 {
		t.Error("a full look found no change")
	}
}
