package recall

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ring is a Sealer with one key.
type ring struct{ key byte }

func (r ring) Active() ([8]byte, error) { return [8]byte{r.key}, nil }

func (r ring) Key(id [8]byte, salt []byte) ([]byte, error) {
	if id[0] != r.key {
		return nil, errors.New("no such key")
	}
	sum := sha256.Sum256(append(id[:], salt...))
	return sum[:], nil
}

func sealers() map[string]Sealer { return map[string]Sealer{"plain": nil, "sealed": ring{1}} }

func TestResultsAreKept(t *testing.T) {
	for name, seal := range sealers() {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", Name)
			s := New(dir, seal)
			if got := s.Get("x"); got != nil {
				t.Fatalf("a result before there is one: %q", got)
			}
			for _, want := range []string{"one", "another", ""} {
				s.Put("x", []byte(want))
				s.Put("y", []byte("of y"))
				if got := New(dir, seal).Get("x"); got == nil || string(got) != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			if err := s.Drop(); err != nil || s.Get("y") != nil {
				t.Errorf("after Drop: %v, %q", err, s.Get("y"))
			}
		})
	}
}

// TestDamagedResultsAreNotThere changes each byte of a file, cuts it anywhere, and puts it under
// another name.
func TestDamagedResultsAreNotThere(t *testing.T) {
	for name, seal := range sealers() {
		t.Run(name, func(t *testing.T) {
			s := New(t.TempDir(), seal)
			s.Put("x", []byte("a result"))
			path, err := s.path("x")
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range file {
				bad := bytes.Clone(file)
				bad[i] ^= 1
				for _, bad := range [][]byte{bad, file[:i]} {
					if err := os.WriteFile(path, bad, 0o600); err != nil {
						t.Fatal(err)
					}
					if got := s.Get("x"); got != nil {
						t.Fatalf("byte %d: a damaged file has the result %q", i, got)
					}
				}
			}
			other, err := s.path("y")
			if err == nil {
				err = os.WriteFile(other, file, 0o600)
			}
			if got := s.Get("y"); err != nil || got != nil {
				t.Errorf("another result's file has the result %q, %v", got, err)
			}
		})
	}
}

func TestSealedResultsNeedTheirKey(t *testing.T) {
	dir := t.TempDir()
	New(dir, ring{1}).Put("secret name", []byte("secret result"))
	for _, seal := range []Sealer{nil, ring{2}} {
		if got := New(dir, seal).Get("secret name"); got != nil {
			t.Errorf("%v: got %q", seal, got)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	file, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
	if err != nil || bytes.Contains(file, []byte("secret")) {
		t.Errorf("the file shows what is sealed: %v", err)
	}
	plain, _ := New(dir, nil).path("secret name")
	if filepath.Base(plain) == entries[0].Name() {
		t.Error("the name of a sealed file is a plain hash")
	}
}

func TestPlainResultsOfAnEncryptedStoreGo(t *testing.T) {
	dir := t.TempDir()
	New(dir, nil).Put("x", []byte("plain"))
	New(dir, ring{1}).Put("y", []byte("sealed"))
	if New(dir, nil).Get("x") != nil || New(dir, ring{1}).Get("y") == nil {
		t.Error("the plain result is there, or the sealed one is not")
	}
}

func TestOldResultsGo(t *testing.T) {
	s := New(t.TempDir(), nil)
	began := time.Unix(1_700_000_000, 0)
	for i := range mostFiles + 3 {
		name := fmt.Sprint(i)
		s.Put(name, []byte(name))
		if path, err := s.path(name); err == nil {
			_ = os.Chtimes(path, began, began.Add(time.Duration(i)*time.Second)) // those that just went are not there
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) != mostFiles {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	if s.Get("0") != nil || s.Get(fmt.Sprint(mostFiles+2)) == nil {
		t.Error("the oldest one is there, or the newest one is not")
	}
}

func TestAResultThatCannotBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(filepath.Join(file, "dir"), nil)
	s.Put("x", []byte("y"))
	if s.Get("x") != nil {
		t.Error("got a result from a directory that cannot be")
	}
	s = New(t.TempDir(), nil)
	s.Put("x", make([]byte, mostBytes+1))
	if s.Get("x") != nil {
		t.Error("a result that is too large was kept")
	}
}
