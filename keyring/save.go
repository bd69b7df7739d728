package keyring

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/stet-dev/stet/internal/osfile"
	"github.com/stet-dev/stet/internal/private"
)

// locked runs fn while no other goroutine and no other process changes the file. The
// lock is a separate file, because the ring's file is replaced.
func (r *Ring) locked(fn func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := flock.New(r.path+".lock", flock.SetPermissions(0o600))
	if err := l.Lock(); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return errors.Join(fn(), l.Close())
}

// save replaces the file and then the state. A crash before the rename leaves the old
// ring, a crash after it the new one. A new key is not used before the directory is
// synced, so that nothing is sealed with a key that a power loss could remove.
func (r *Ring) save(s *state) error {
	data, err := s.encode()
	if err != nil {
		return err
	}
	tmp := r.path + ".tmp" // one name, so that killed processes leave at most one file
	info, err := r.writeTemp(tmp, data)
	if err == nil {
		err = r.step("rename")
	}
	if err == nil {
		err = osfile.Rename(tmp, r.path)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	if err := r.step("sync directory"); err != nil {
		return err
	}
	if err := osfile.SyncDir(filepath.Dir(r.path)); err != nil {
		return err
	}
	r.seen = info
	r.state.Store(s)
	return nil
}

func (r *Ring) writeTemp(tmp string, data []byte) (os.FileInfo, error) {
	if err := r.step("create"); err != nil {
		return nil, err
	}
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close() // a second Close is harmless
	if err := r.step("write"); err != nil {
		return nil, err
	}
	if _, err := f.Write(data); err != nil {
		return nil, err
	}
	if err := r.step("sync"); err != nil {
		return nil, err
	}
	if err := f.Sync(); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return info, f.Close()
}

func (r *Ring) step(name string) error {
	if r.fault == nil {
		return nil
	}
	return r.fault(name)
}

func readSmall(path string) ([]byte, error) {
	data, _, err := readStat(path)
	return data, err
}

// readStat reads a file of at most maxFile bytes and returns its FileInfo.
func readStat(path string) ([]byte, os.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if err := private.Check(path, info); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxFile {
		return nil, nil, corrupt("%s has more than %d bytes", path, maxFile)
	}
	return data, info, nil
}
