package cli

import (
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/workspace"
)

// explain adds a hint for people if one helps. The class of an error, and with it the
// exit code, stays.
func (a *app) explain(err error) error {
	var known *codedError
	var silent silentExit
	if err == nil || errors.As(err, &known) || errors.As(err, &silent) {
		return err
	}
	if errors.Is(err, sqlite.ErrNoStore) {
		return coded(ExitNotFound, "no store at %s; create one with 'stet init'", shown(a.storePlace()))
	}
	if errors.Is(err, workspace.ErrRootRefused) {
		err = fmt.Errorf("%w; name a directory inside it with -C, or set capture.force", err)
	}
	err = hinted(err)
	var conflict *checkpoint.ConflictError
	if errors.As(err, &conflict) {
		err = fmt.Errorf("%w; nothing was changed; pass %s", err, wayOut(conflict))
	}
	return err
}

// hinted adds what to do next.
func hinted(err error) error {
	switch {
	case errors.Is(err, checkpoint.ErrBadRef):
		return fmt.Errorf("%w; 'stet help diff' lists the forms of a reference", err)
	case errors.Is(err, checkpoint.ErrNotFound):
		return fmt.Errorf("%w; 'stet log --all' lists all checkpoints", err)
	case errors.Is(err, sqlite.ErrWrongLog):
		return fmt.Errorf("%w; to continue without it, run 'stet fsck --forget-log'", err)
	case errors.Is(err, kv.ErrUncertain):
		return fmt.Errorf("%w; the next command shows the outcome", err)
	case errors.Is(err, checkpoint.ErrOtherFileSystem):
		return fmt.Errorf("%w; name the paths to rewind with '-- PATH…', or use the mounted directory as a separate workspace with -C", err)
	case errors.Is(err, checkpoint.ErrSameName):
		return fmt.Errorf("%w; name one of them, and what else to rewind, with '-- PATH…'", err)
	case errors.Is(err, blob.ErrFull):
		return fmt.Errorf("%w; free some on that disk; 'stet du' shows what the store uses, and once there is some room 'stet gc' can free more", err)
	}
	return err
}
