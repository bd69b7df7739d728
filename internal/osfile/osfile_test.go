package osfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-dev/stet/internal/osfile"
)

// What is in use is tried again for seconds, and then named.
func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, start := 0, time.Now()
		err := osfile.Try(func() error {
			calls++
			return &os.PathError{Op: "open", Path: "kept", Err: osfile.ErrInUse}
		})
		if !errors.Is(err, osfile.ErrInUse) || calls != osfile.Tries+1 || time.Since(start) < 5*time.Second {
			t.Errorf("%v after %d calls and %v", err, calls, time.Since(start))
		}
		calls = 0
		err = osfile.Try(func() error {
			if calls++; calls < 4 {
				return osfile.ErrInUse
			}
			return nil
		})
		if err != nil || calls != 4 {
			t.Errorf("given up by its holder: %v after %d calls", err, calls)
		}
		calls = 0
		if err := osfile.Try(func() error { calls++; return os.ErrNotExist }); !errors.Is(err, os.ErrNotExist) || calls != 1 {
			t.Errorf("another error: %v after %d calls", err, calls)
		}
	})
}

func TestOpenAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := osfile.OpenAlone(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := osfile.OpenAlone(path); !errors.Is(err, osfile.ErrInUse) {
		t.Errorf("the second: %v, want ErrInUse", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := osfile.OpenAlone(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file that others read is replaced, and its names are durable where they can be.
func TestRenameOverAReadFile(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"new": "new", "old": "old"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := os.Open(filepath.Join(dir, "old"))
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- reader.Close() }() // before the last attempt
	if err := osfile.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if err := osfile.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "old")); err != nil || string(got) != "new" {
		t.Errorf("%q %v", got, err)
	}
}

func TestLock(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := osfile.Lock(f); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("text"); err != nil { // a lock keeps nobody from the content
		t.Fatal(err)
	}
	osfile.Unlock(f)
}
