package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/recorder"
	"github.com/stet-dev/stet/foreign/spool"
	"github.com/stet-dev/stet/sqlite"
)

// withStoreOf opens the store for an event. A store that had the session and is gone is not
// made anew in silence: the end of a turn stays unrecorded, and the beginning of the next one
// makes a store and says so.
func (a *app) withStoreOf(ctx context.Context, adapter foreign.Adapter, event foreign.Event, use func(*stet.DB, *recorder.Recorder) error) error {
	err := a.withRecorder(ctx, adapter, false, use)
	if !errors.Is(err, sqlite.ErrNoStore) {
		return err
	}
	dir, err := a.hookDir()
	if err != nil {
		return err
	}
	had, err := spool.Open(dir, adapter.Name(), event.Session).Recorded(ctx)
	var gone error
	switch place := shown(a.storePlace()); {
	case err != nil || !had: // what the spool does not know was not there
	case event.Kind == foreign.TurnStart:
		gone = fmt.Errorf("the store %s, which had the earlier turns of the session, is gone; a new one was made", place)
	default:
		return fmt.Errorf("the store %s was removed while the agent worked, so the end of the turn is not recorded; put the store back, or the next prompt makes a new one", place)
	}
	return errors.Join(gone, a.withRecorder(ctx, adapter, true, use))
}
