package upkeep_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/upkeep"
)

// archiverDir makes the test binary a process that saves, archives, unarchives and
// collects in a store until it is killed.
const archiverDir = "STET_TEST_ARCHIVE"

// archiveAndSave says "id turns" after every save.
func archiveAndSave(ctx context.Context, dir string) error {
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	for {
		id := fmt.Sprint("talk ", rand.IntN(4))
		c, err := db.Conversations().Open(ctx, id)
		if errors.Is(err, conversation.ErrNotFound) {
			c, err = db.Conversations().Create(ctx, conversation.Info{ID: id})
		}
		if err != nil {
			return err
		}
		if err := addTurn(ctx, c, fmt.Sprint("turn ", rand.Int())); err != nil {
			return err
		}
		fmt.Println(id[len("talk "):], c.Head().Seq)
		for range 2 {
			if _, err := db.Archive(ctx, id); err != nil && !errors.Is(err, pack.ErrArchived) && !errors.Is(err, pack.ErrEmpty) {
				return err
			}
			id = fmt.Sprint("talk ", rand.IntN(4))
			if err := db.Unarchive(ctx, id); err != nil && !errors.Is(err, pack.ErrNotArchived) {
				return err
			}
		}
		if _, err := db.Collect(ctx, &upkeep.CollectOptions{Grace: -1}); err != nil {
			return err
		}
	}
}

// A process that is killed while it archives, or brings something back, loses nothing.
func TestKilledArchiver(t *testing.T) {
	dir := t.TempDir()
	var acked [4]uint64
	for range testenv.Scale(12, 400) {
		runArchiver(t, dir, &acked)
		db, err := stet.Open(t.Context(), dir, nil)
		must(t, err)
		sound(t, db)
		for n, want := range acked {
			if want == 0 {
				continue
			}
			state, err := db.Conversations().Hydrate(t.Context(), fmt.Sprint("talk ", n), nil)
			if err != nil || uint64(len(state.Turns)) < want {
				t.Errorf("conversation %d: %v, want %d turns", n, err, want)
			}
		}
		must(t, db.Close())
		if t.Failed() {
			return
		}
	}
}

func runArchiver(t *testing.T, dir string, acked *[4]uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), archiverDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for saves := 1 + rand.IntN(5); lines.Scan(); saves-- {
		var n int
		var seq uint64
		if _, err := fmt.Sscan(lines.Text(), &n, &seq); err != nil {
			t.Errorf("%q: %v", lines.Text(), err)
		}
		acked[n] = max(acked[n], seq)
		if saves == 1 { // at some point of what it does next
			time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond)
			cmd.Process.Kill()
		}
	}
	must(t, lines.Err())
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Errorf("it was not killed: %v", err)
	}
}
