package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/s3blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/postgres"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/workspace"
)

// serviceCodes says which exit codes the errors of services have. The first that
// fits counts.
var serviceCodes = []struct {
	err  error
	code int
}{
	{blob.ErrCorrupt, ExitDamage}, // also where it made a rewind fail: running it again will not help
	{checkpoint.ErrRolledBack, ExitRolledBack},
	{checkpoint.ErrInterrupted, ExitError},
	{checkpoint.ErrConflict, ExitConflict},
	{checkpoint.ErrStalePlan, ExitConflict},
	{checkpoint.ErrBusy, ExitBusy},
	{checkpoint.ErrAmbiguous, ExitUsage},
	{checkpoint.ErrBadRef, ExitUsage},
	{checkpoint.ErrNotFound, ExitNotFound},
	{checkpoint.ErrNothing, ExitNotFound},
	{checkpoint.ErrInPlace, ExitConflict},
	{checkpoint.ErrOtherWorkspace, ExitConflict},
	{workspace.ErrRootRefused, ExitUsage},
	{workspace.ErrBadPath, ExitUsage},
	{conversation.ErrDataLoss, ExitDamage},
	{access.ErrAuditChanged, ExitDamage},
	{conversation.ErrNotFound, ExitNotFound},
	{conversation.ErrExists, ExitConflict},
	{conversation.ErrStale, ExitConflict},
	{postgres.ErrInvalidDSN, ExitUsage},
	{postgres.ErrUnavailable, ExitUnreachable},
	{s3blob.ErrUnavailable, ExitUnreachable},
	{s3blob.ErrNoBucket, ExitNotFound},
	{fleet.ErrNotEmpty, ExitConflict},
	{fleet.ErrDiffers, ExitConflict},
	{fleet.ErrMigrating, ExitConflict},
	{fleet.ErrArchivedSource, ExitConflict},
	{fleet.ErrOtherTenant, ExitUsage},
	{syscall.ENOTDIR, ExitUsage},
}

// explain gives errors of services their exit codes, and a hint where one helps.
func (a *app) explain(err error) error {
	var known *codedError
	var silent silentExit
	if err == nil || errors.As(err, &known) || errors.As(err, &silent) {
		return err
	}
	if errors.Is(err, sqlite.ErrNoStore) {
		return coded(ExitNotFound, "there is no store at %s yet; 'stet init' makes one", shown(a.storePlace()))
	}
	if errors.Is(err, workspace.ErrRootRefused) {
		err = fmt.Errorf("%w; name a directory inside it with -C, or set capture.force to insist", err)
	}
	err = hinted(err)
	var conflict *checkpoint.ConflictError
	if errors.As(err, &conflict) {
		err = fmt.Errorf("%w; nothing was done: say --keep-mine, --theirs or --merge", err)
	}
	for _, service := range serviceCodes {
		if errors.Is(err, service.err) {
			return &codedError{code: service.code, err: err}
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return coded(ExitError, "%w", err)
	}
	return err
}

// hinted says how to go on.
func hinted(err error) error {
	switch {
	case errors.Is(err, checkpoint.ErrBadRef):
		return fmt.Errorf("%w; 'stet help diff' lists the forms of a reference", err)
	case errors.Is(err, checkpoint.ErrNotFound):
		return fmt.Errorf("%w; 'stet log --all' shows what there is", err)
	case errors.Is(err, sqlite.ErrWrongLog):
		return fmt.Errorf("%w; to go on without it: 'stet fsck --forget-log'", err)
	case errors.Is(err, kv.ErrUncertain):
		return fmt.Errorf("%w; the next command shows which it is", err)
	case errors.Is(err, checkpoint.ErrOtherFileSystem):
		return fmt.Errorf("%w; name the paths to take back with '-- PATH…', or make what is mounted there a workspace of its own with -C", err)
	case errors.Is(err, blob.ErrFull):
		return fmt.Errorf("%w; make some on that disk, then 'stet du' shows what takes it and 'stet gc' gives some back", err)
	}
	return err
}
