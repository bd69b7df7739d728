package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/keyring"
)

// TestCompactTimeIsAnEighth adds up what verbs of one length give to compressing.
func TestCompactTimeIsAnEighth(t *testing.T) {
	for _, took := range []time.Duration{400 * time.Millisecond, 2 * time.Second, 8 * time.Second} {
		if got := compactTime(took); got != took/8 {
			t.Errorf("a verb of %v gives %v", took, got)
		}
	}
	if got := compactTime(time.Hour); got != time.Second {
		t.Errorf("a verb of an hour gives %v", got)
	}
	some := 0
	for range 8000 {
		switch got := compactTime(60 * time.Millisecond); got {
		case 0:
		case 25 * time.Millisecond:
			some++
		default:
			t.Fatalf("a short verb gives %v", got)
		}
	}
	if some < 700 || some > 1300 { // ten standard deviations
		t.Errorf("of 8000 short verbs %d compress, want about 1000", some)
	}
}

// household is a workspace and a store for commands that are processes.
type household struct {
	t          *testing.T
	dir, store string
	env        []string
	unlock     *keyring.Unlock // of an encrypted store
}

func newHousehold(t *testing.T, env ...string) *household {
	home := t.TempDir()
	h := &household{t: t, dir: filepath.Join(home, "work"), store: filepath.Join(home, "store")}
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h.env = append(os.Environ(), "HOME="+filepath.Join(home, "home"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"))
	h.env = append(h.env, env...)
	return h
}

// stet runs a command in the workspace and returns all that it says.
func (h *household) stet(code int, args ...string) string {
	h.t.Helper()
	program, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: program, Args: append([]string{"stet", "--store", h.store}, args...), Dir: h.dir, Env: h.env}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != code {
		h.t.Fatalf("stet %s: %v, want exit code %d\n%s", strings.Join(args, " "), err, code, out)
	}
	return string(out)
}

// storeMuch makes a checkpoint of files that differ, can be compressed, and are worth a
// process.
func (h *household) storeMuch(round int) {
	h.t.Helper()
	for i := range 10 {
		data := bytes.Repeat(fmt.Appendf(nil, "line of file %d in round %d\n", i, round), worthAProcess/100)
		if err := os.WriteFile(filepath.Join(h.dir, fmt.Sprint(i)), data, 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	h.stet(0, "checkpoint")
}

// compacts reports whether a process compacted, or was about to.
func (h *household) compacts() bool {
	_, err := os.Stat(filepath.Join(h.store, compactLock))
	return err == nil
}

// waits returns how much is not compressed.
func (h *household) waits() int64 {
	h.t.Helper()
	db, err := stet.Open(h.t.Context(), h.store, &stet.Options{Unlock: h.unlock})
	if err != nil {
		h.t.Fatal(err)
	}
	n, err := db.Backlog(h.t.Context(), math.MaxInt64)
	if err := errors.Join(err, db.Close()); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// leftBehind waits until a process compacted in the background, and has ended. It has the
// lowest priority: beside other tests it may have to wait long, and a look at a store with
// a passphrase takes more processor time than it does.
func (h *household) leftBehind() {
	h.t.Helper()
	for began := time.Now(); h.waits() > 0; time.Sleep(200 * time.Millisecond) {
		if time.Since(began) > 15*time.Minute {
			h.t.Fatal("nothing compacts in the background")
		}
	}
	lock := flock.New(filepath.Join(h.store, compactLock))
	ctx, cancel := context.WithTimeout(h.t.Context(), 15*time.Minute)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		h.t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		h.t.Fatal(err)
	}
}

const inBackground = "STET_COMPACT_BACKGROUND=true"

func TestCommandsLeaveAProcessBehind(t *testing.T) {
	t.Parallel()
	const phrase = "open sesame, and more"
	for name, begin := range map[string]func(h *household){
		"plain": func(*household) {},
		"with a passphrase": func(h *household) {
			h.unlock = new(keyring.Passphrase(phrase, nil))
			h.env = append(h.env, "STET_PASSPHRASE="+phrase)
			h.stet(0, "keys", "init", "--passphrase")
		},
		"with files named from here": func(h *household) {
			h.unlock = new(keyring.KeyFile(filepath.Join(h.dir, "my.key")))
			h.env = append(h.env, "STET_KEY_FILE=my.key", "STET_CONFIG=my.toml")
			h.stet(0, "keys", "init")
			h.stet(0, "config", "set", "author", "me")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHousehold(t, inBackground)
			begin(h)
			for round := 0; !h.compacts(); round++ { // a slow command may compact what it stores itself
				if round == 20 {
					t.Fatal("no process is left behind")
				}
				h.storeMuch(round)
			}
			h.leftBehind()
			h.stet(0, "fsck", "--read-data")
			if why, _ := lastFailure(h.store); why != "" {
				t.Errorf("it failed: %s", why)
			}
		})
	}
}

// TestManyShortCommandsLeaveAProcessBehind stores less than is worth a process,
// again and again.
func TestManyShortCommandsLeaveAProcessBehind(t *testing.T) {
	t.Parallel()
	h := newHousehold(t, inBackground)
	for i := range 400 {
		data := bytes.Repeat(fmt.Appendf(nil, "a line of round %d\n", i), 10_000)
		if err := os.WriteFile(filepath.Join(h.dir, "file"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		h.stet(0, "checkpoint")
		if h.compacts() {
			if i < worthAProcess/(len(data)+1000) {
				t.Errorf("a process is left behind after %d rounds of %d bytes", i+1, len(data))
			}
			h.leftBehind()
			return
		}
	}
	t.Error("nothing ever compacts")
}

func TestNoProcessIsLeftBehind(t *testing.T) {
	t.Parallel()
	t.Run("by a setting", func(t *testing.T) {
		h := newHousehold(t, "STET_COMPACT_BACKGROUND=false")
		h.storeMuch(0)
		if h.compacts() {
			t.Error("a process was about to compact")
		}
	})
	t.Run("after a failure", func(t *testing.T) {
		h := newHousehold(t, inBackground)
		h.stet(0, "init")
		if err := noteFailure(h.store, errors.New("no\nluck")); err != nil {
			t.Fatal(err)
		}
		h.storeMuch(0)
		if out := h.stet(1, "doctor", "--quick"); !strings.Contains(out, "no luck; 'stet compact' tries again") {
			t.Errorf("doctor says\n%s", out)
		}
		longAgo := time.Now().Add(-2 * failedFor)
		if err := os.Chtimes(filepath.Join(h.store, compactLock), longAgo, longAgo); err != nil {
			t.Fatal(err)
		}
		if failedLately(h.store) {
			t.Error("it is never tried again")
		}
		if out := h.stet(0, "compact"); !strings.HasPrefix(out, "everything is compressed") {
			t.Errorf("compact says %q", out)
		}
		h.stet(0, "doctor", "--quick")
		if got := h.waits(); got != 0 {
			t.Errorf("%d bytes wait", got)
		}
	})
	t.Run("beside another", func(t *testing.T) {
		h := newHousehold(t, inBackground)
		h.stet(0, "init")
		lock := flock.New(filepath.Join(h.store, compactLock))
		if ok, err := lock.TryLock(); !ok {
			t.Fatal(err)
		}
		h.storeMuch(0)
		before := h.waits()
		h.stet(0, "compact", "--background")
		if after := h.waits(); after != before {
			t.Errorf("two compacted at once: %d bytes wait, and %d before", after, before)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		h.stet(0, "compact", "--background")
		if got := h.waits(); got != 0 {
			t.Errorf("%d bytes wait", got)
		}
	})
}

// TestAFailureIsNoted has the background process fail where nobody looks.
func TestAFailureIsNoted(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.stet(0, "init")
	if err := noteFailure(h.store, fmt.Errorf("compact: %w", context.Canceled)); err != nil {
		t.Fatal(err)
	}
	if why, _ := lastFailure(h.store); why != "" {
		t.Errorf("to be stopped is noted as %q", why)
	}
	if err := os.Truncate(filepath.Join(h.store, compactLock), 1); err != nil { // as on a full disk
		t.Fatal(err)
	}
	if why, _ := lastFailure(h.store); why != "no space to record the reason" || !failedLately(h.store) {
		t.Errorf("without room it is noted as %q", why)
	}
	database := filepath.Join(h.store, "stet.db")
	if err := os.WriteFile(database, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := h.stet(6, "compact", "--background")
	if why, at := lastFailure(h.store); why == "" || time.Since(at) > time.Hour {
		t.Errorf("noted %q at %v, it said %s", why, at, out)
	}
}

func TestCompactNeedsALocalStore(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.store = "http://127.0.0.1:1"
	if out := h.stet(2, "compact"); !strings.Contains(out, "needs a local store") {
		t.Errorf("it says %s", out)
	}
	h.store = filepath.Join(t.TempDir(), "none")
	h.stet(3, "compact")
}
