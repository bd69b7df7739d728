package cli

import (
	"context"
	"errors"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/recorder"
	"github.com/stet-dev/stet/sqlite"
)

// Limits of the wait for a record that the agent writes after the end of a turn. It looks
// at the record again and again, more and more seldom.
const (
	wordsLimit = time.Minute
	wordsPause = 20 * time.Millisecond
	wordsRest  = 500 * time.Millisecond
)

// hookWords waits behind the agent until its record has the turn that ended, and copies
// it. It gives up when the agent is gone or the time is over: the next event of the session
// copies the turn then. The store is open only while something is copied.
func (a *app) hookWords(ctx context.Context, adapter foreign.Adapter, event foreign.Event) error {
	host, err := foreign.ThisHost()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wordsLimit)
	defer cancel()
	look := &recorder.Recorder{Adapter: adapter, Host: host}
	agent := agentProcess(adapter.Name())
	seen := ""
	for pause := wordsPause; ; pause = min(2*pause, wordsRest) {
		gone := len(agent) > 0 && agent[0].Life() == checkpoint.Gone // before the last look
		if now := look.Changed(ctx, event); now != seen {
			seen, pause = now, wordsPause
			whole := false
			err := a.withRecorder(ctx, adapter, false, func(_ *stet.DB, r *recorder.Recorder) (err error) {
				whole, err = r.Words(ctx, event)
				return err
			})
			if errors.Is(err, sqlite.ErrNoStore) {
				return nil // it was removed since
			}
			if whole || err != nil && ctx.Err() == nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if gone {
			return nil
		}
	}
}
