package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
)

const (
	// compactLock, in the store's directory, is locked by the one process that
	// compacts. Its text is why the last one failed. The name is that of earlier
	// releases, so that they and this one do not compact at the same time.
	compactLock = "settle.lock"
	// worthAProcess is how many bytes must wait before a process is left behind for
	// them. Less does no harm as it is.
	worthAProcess = 4 << 20
	// failedFor is how long nobody tries again in the background after a failure.
	failedFor = time.Hour
	// share is the part of its own time, and of all short verbs, that a verb gives to
	// contents that are not compressed.
	share = 8
)

func (a *app) compactCommand() *cobra.Command {
	var background bool
	cmd := &cobra.Command{
		Use:     "compact",
		Short:   "Compress recently stored content",
		GroupID: groupHouse,
		Long: `Compress content that commands stored as it came, and give the free space back to
the file system. This also happens without the command: a command that stored much
starts a background process for it, a server does it when it is quiet, and gc does it
at its end. It can be interrupted at any time and runs beside other commands.

Set compact.background = false to start no background process; commands then do a
part of the work themselves.`,
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
	cmd.Flags().BoolVar(&background, "background", false, "do it with low priority, unless another process does it")
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
	lock := flock.New(filepath.Join(dir, compactLock))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return fmt.Errorf("wait for the process that compresses: %w", err)
	}
	defer lock.Close()
	value := compactJSON{Schema: "stet.settle.v1"}
	looked := a.counter("compressing")
	err := db.Compact(ctx, func(done int) {
		value.Looked = done
		looked.set(int64(done))
	})
	looked.done()
	if err = errors.Join(err, noteFailure(dir, err)); err != nil {
		return err
	}
	text := "everything is compressed"
	if value.Looked > 0 {
		text += "; looked at " + plural(int64(value.Looked), "blob")
	}
	return a.print(value, text+"\n")
}

// compact compresses all recently stored content at the end of another verb.
func (a *app) compact(ctx context.Context, db *stet.DB) error {
	looked := a.counter("compressing")
	defer looked.done()
	return db.Compact(ctx, func(done int) { looked.set(int64(done)) })
}

// compactAfter looks after what a verb stored as it came. It tells nobody where it
// fails, as on a full disk: the verb has done its work, and what is not compressed
// is only larger.
func (a *app) compactAfter(ctx context.Context, db *stet.DB, took time.Duration) {
	own := db.Uncompacted()
	if own == 0 {
		return
	}
	dir, err := a.storeDir()
	if err != nil || !a.background || a.asked { // nobody could ask in the background
		compactAWhile(ctx, db, compactTime(took))
		return
	}
	if own >= worthAProcess || oneOfMany() && muchWaits(ctx, db) {
		_ = a.leaveBehind(dir)
	}
}

// oneOfMany lets one short verb do something for all.
func oneOfMany() bool { return rand.IntN(share) == 0 }

func muchWaits(ctx context.Context, db *stet.DB) bool {
	n, err := db.Backlog(ctx, worthAProcess)
	return err == nil && n >= worthAProcess
}

// compactTime is how long a verb that stored something, and took so long itself, may
// go on compressing that, or what earlier ones left: about an eighth of its time.
// Short verbs would do nothing within theirs, so one of eight of them does it for
// all. The rest waits for the next verb, the server or gc.
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

// leaveBehind starts this program once more, for compactBehind. It does not wait
// for it.
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
	program, err := os.Executable()
	if err != nil {
		return err
	}
	env := append(os.Environ(), "GOMAXPROCS=1")
	for name, path := range map[string]string{"STET_KEY_FILE": a.keyPath(), "STET_CONFIG": a.settingsFile()} {
		if path == "" {
			continue
		}
		if path, err = filepath.Abs(path); err != nil { // it starts in another directory
			return err
		}
		env = append(env, name+"="+path)
	}
	cmd := &exec.Cmd{
		Path: program, Args: []string{os.Args[0], "--store", dir, "-q", "compact", "--background"},
		Env: env, Dir: "/", // in nobody's way
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // stays when the terminal goes
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// compactBehind compacts with low priority unless another process does, and leaves a
// note where that fails: nothing reads its output.
func (a *app) compactBehind(ctx context.Context, dir string) error {
	lock := flock.New(filepath.Join(dir, compactLock))
	free, err := lock.TryLock()
	if err != nil || !free {
		return err
	}
	defer lock.Close()
	standBack()
	err = a.withStore(ctx, false, func(db *stet.DB) error { return db.Compact(ctx, nil) })
	return errors.Join(err, noteFailure(dir, err))
}

// noteFailure writes why compacting failed, or that it did not. To be stopped is not a
// failure.
func noteFailure(dir string, failed error) error {
	text := ""
	if failed != nil && !isCancelled(failed) {
		text = strings.Join(strings.Fields(failed.Error()), " ") + "\n"
	}
	path := filepath.Join(dir, compactLock)
	err := os.WriteFile(path, []byte(text), 0o600)
	if err != nil && text != "" {
		return os.Truncate(path, 1) // a hole needs no room, and tells that it failed
	}
	return err
}

// lastFailure returns why and when compacting in the background failed, or the zero
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
		why = "there was no room to note why"
	}
	return why, info.ModTime()
}

func failedLately(dir string) bool {
	_, at := lastFailure(dir)
	return time.Since(at).Abs() < failedFor
}
