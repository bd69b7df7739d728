package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
)

const (
	// compactLock, in the store's directory, is locked by the one process that
	// compresses. Its text is the error of the last one, if it failed. Earlier releases
	// use the same name, so that they and this one do not compress at the same time.
	compactLock = "settle.lock"
	// worthAProcess is how many uncompressed bytes are worth a background process.
	// Less is harmless.
	worthAProcess = 4 << 20
	// failedFor is how long no background process is started after a failure.
	failedFor = time.Hour
	// share is the fraction of a verb's own time, and of all short verbs, that is
	// spent on compressing.
	share = 8
)

func (a *app) compactCommand() *cobra.Command {
	var background bool
	cmd := &cobra.Command{
		Use:     "compact",
		Short:   "Compress recently stored content",
		GroupID: groupHouse,
		Long: `Compress recently stored content, return the space to the file system, and bring the
indexes of the store up to date. You need not run it: a command that stored a lot of
content starts it in the background, a server runs it when it is idle, and gc runs it at
its end. You may interrupt it at any time, and other commands can run at the same time.

With compact.background = false, commands start no background process and do a part of
the work themselves.`,
		Example: "  stet compact\n  stet config set compact.background false",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.storeDir()
			if err != nil {
				return err
			}
			if background {
				return a.compactBehind(cmd.Context(), dir)
			}
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error { return a.compactNow(cmd.Context(), db, dir) })
		},
	}
	cmd.Flags().BoolVar(&background, "background", false, "run with low priority, unless another process is compressing")
	_ = cmd.Flags().MarkHidden("background")
	return cmd
}

type compactJSON struct {
	Schema string `json:"schema"`
	Looked int    `json:"looked_at"`
}

// compactNow waits for a process in the background, if there is one, so that
// everything is compressed when it returns.
func (a *app) compactNow(ctx context.Context, db *stet.DB, dir string) error {
	if err := db.Engine().Refusal(); err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	lock := flock.New(filepath.Join(dir, compactLock))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return fmt.Errorf("wait for another compressing process: %w", err)
	}
	defer lock.Close()
	value := compactJSON{Schema: "stet.settle.v1"}
	looked := a.counter("compressing")
	err := db.Compact(ctx, func(done int) {
		value.Looked = done
		looked.set(int64(done))
	})
	looked.done()
	read := a.counter("listing conversations")
	err = errors.Join(err, db.UpdateIndexes(ctx, func(done int) { read.set(int64(done)) }))
	read.done()
	if err = errors.Join(err, noteFailure(dir, err)); err != nil {
		return err
	}
	text := "everything is compressed"
	if value.Looked > 0 {
		text += "; examined " + plural(int64(value.Looked), "blob")
	}
	return a.print(value, text+"\n")
}

// compact compresses recently stored content at the end of another verb.
func (a *app) compact(ctx context.Context, db *stet.DB) error {
	looked := a.counter("compressing")
	defer looked.done()
	return db.Compact(ctx, func(done int) { looked.set(int64(done)) })
}

// compactAfter handles content that a verb stored uncompressed. It does not report
// failures, as on a full disk: the verb has succeeded, and uncompressed content is
// only larger.
func (a *app) compactAfter(ctx context.Context, db *stet.DB, took time.Duration) {
	own := db.Uncompacted()
	dir, err := a.storeDir()
	if err == nil && a.background && !a.asked && indexesWait(ctx, db) {
		_ = a.leaveBehind(dir)
		return
	}
	if own == 0 {
		return
	}
	if err != nil || !a.background || a.asked { // a background process cannot ask for the passphrase
		compactAWhile(ctx, db, compactTime(took))
		return
	}
	if own >= worthAProcess || oneOfMany() && muchWaits(ctx, db) {
		_ = a.leaveBehind(dir)
	}
}

func indexesWait(ctx context.Context, db *stet.DB) bool {
	waits, err := db.IndexesWait(ctx)
	return err == nil && waits
}

// oneOfMany selects one of share short verbs at random.
func oneOfMany() bool { return rand.IntN(share) == 0 }

func muchWaits(ctx context.Context, db *stet.DB) bool {
	n, err := db.Backlog(ctx, worthAProcess)
	return err == nil && n >= worthAProcess
}

// compactTime is how long a verb that stored something may compress it, or what
// earlier ones left: about an eighth of its own time. That is too little for short
// verbs, so one in eight of them does it for all. The rest waits for the next verb,
// the server or gc.
func compactTime(took time.Duration) time.Duration {
	const worth, most = 50 * time.Millisecond, time.Second
	if took/share >= worth {
		return min(took/share, most)
	}
	if oneOfMany() {
		return worth / 2
	}
	return 0
}

func compactAWhile(ctx context.Context, db *stet.DB, limit time.Duration) {
	if limit == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_ = db.Compact(ctx, nil)
}

// leaveBehind starts this program again for compactBehind and does not wait for it.
func (a *app) leaveBehind(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	lock := flock.New(filepath.Join(dir, compactLock))
	free, err := lock.TryLock()
	if err := errors.Join(err, lock.Close()); err != nil || !free || failedLately(dir) {
		return err
	}
	return a.behind(dir, nil, "GOMAXPROCS=1", "compact", "--background")
}

// compactBehind compresses with low priority if no other process does, brings indexes up
// to date, and records a failure in a file, because its output is not shown.
func (a *app) compactBehind(ctx context.Context, dir string) error {
	lock := flock.New(filepath.Join(dir, compactLock))
	free, err := lock.TryLock()
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("compress: %w: %w", blob.ErrReadOnly, err)
	}
	if err != nil || !free {
		return err
	}
	defer lock.Close()
	standBack()
	err = a.withStore(ctx, false, func(db *stet.DB) error {
		return errors.Join(db.Compact(ctx, nil), db.UpdateIndexes(ctx, nil))
	})
	return errors.Join(err, noteFailure(dir, err))
}

// noteFailure records why compressing failed, or that it did not. Being stopped is
// not a failure.
func noteFailure(dir string, failed error) error {
	text := ""
	if failed != nil && !isCancelled(failed) {
		text = strings.Join(strings.Fields(failed.Error()), " ") + "\n"
	}
	path := filepath.Join(dir, compactLock)
	err := os.WriteFile(path, []byte(text), 0o600)
	if err != nil && text != "" {
		return os.Truncate(path, 1) // a hole needs no space and still marks the failure
	}
	return err
}

// lastFailure returns why and when compressing in the background failed, or the zero
// time.
func lastFailure(dir string) (why string, at time.Time) {
	path := filepath.Join(dir, compactLock)
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return "", time.Time{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", time.Time{}
	}
	if why = strings.Trim(string(text), "\x00\n"); why == "" {
		why = "no space to record the reason"
	}
	return why, info.ModTime()
}

func failedLately(dir string) bool {
	_, at := lastFailure(dir)
	return time.Since(at).Abs() < failedFor
}
