package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/stet-dev/stet/workspace"
)

const (
	// defaultRereadEvery is the time within which checkpoints read every file again.
	// Changes without a new stamp are found within a week, and a checkpoint each
	// minute reads one file in ten thousand.
	defaultRereadEvery = 7 * 24 * time.Hour
	// rereadPause is the minimum time between two shares: a shorter one would be
	// smaller than a file.
	rereadPause = time.Minute
	// rereadFiles and rereadBytes limit what one checkpoint reads again to about a
	// tenth of a second, however long ago the last one was. Larger trees take longer
	// for a round.
	rereadFiles = 4096
	rereadBytes = 64 << 20
)

// round is the progress of rereading apparently unchanged files of a workspace. It is
// stored beside the index and, like it, is only a cache.
type round struct {
	At    int64  `json:"at_ms"` // when the last share was read
	To    uint32 `json:"to"`    // where it ended
	Files int64  `json:"files"` // of the workspace, then
	Bytes int64  `json:"bytes"`
}

// share returns the share of files that a checkpoint reads again, which depends on
// the time since the last one did, and the round after it. The round is nil if
// nothing is due.
func (r round) share(now time.Time, every time.Duration) (workspace.Share, *round) {
	past := now.Sub(time.UnixMilli(r.At))
	next := &round{At: now.UnixMilli(), To: r.To}
	if r.At == 0 || past < 0 { // the first one, or the clock was set back
		return workspace.Share{}, next
	}
	if past < rereadPause {
		return workspace.Share{}, nil
	}
	part := min(1, float64(past)/float64(every))
	if r.Files > 0 {
		part = min(part, rereadFiles/float64(r.Files))
	}
	if r.Bytes > 0 {
		part = min(part, rereadBytes/float64(r.Bytes))
	}
	if part >= 1 {
		at := max(1, r.To)
		return workspace.Share{From: at, To: at}, next
	}
	next.To = r.To + max(1, uint32(part*math.MaxUint32))
	return workspace.Share{From: r.To, To: next.To}, next
}

// due returns the share that is due now. The caller holds the workspace's lock.
func (w *Workspace) due() (workspace.Share, *round) {
	every := w.s.opts.RereadEvery
	if every < 0 || w.s.opts.IndexDir == "" {
		return workspace.Share{}, nil
	}
	if every == 0 {
		every = defaultRereadEvery
	}
	var r round
	if data, err := os.ReadFile(w.s.file(w.id, ".round")); err != nil || json.Unmarshal(data, &r) != nil {
		r = round{} // a new one begins
	}
	return r.share(w.s.opts.Now(), every)
}

// keepRound remembers that a share was read.
func (w *Workspace) keepRound(r *round, stats workspace.Stats) error {
	if r == nil {
		return nil
	}
	r.Files, r.Bytes = stats.Files, stats.Size
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(w.s.file(w.id, ".round"), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("remember what was read again: %w", err)
	}
	return nil
}
