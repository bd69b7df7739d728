// Package recall keeps results that can be worked out again in files of a directory, so that
// the next process need not.
//
//	kept := recall.New(dir, nil)
//	data := kept.Get("lines of main.go")
//	if data == nil {
//		data = workOut()
//		kept.Put("lines of main.go", data)
//	}
//
// A result is there or is not: one that is damaged, of another release or sealed with a key
// that is gone counts as not there, and a failed Put only makes the next caller work again.
// So nothing is synced, and the whole directory may be removed at any time.
//
// The caller names a result after everything that it depends on, or checks what it gets. The
// files of an encrypted store are sealed, and their names do not tell what they are about.
package recall

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stet-dev/stet/internal/osfile"
)

// Sealer provides keys for an encrypted store; see workspace.Sealer.
type Sealer interface {
	Active() (id [8]byte, err error)
	Key(id [8]byte, salt []byte) ([]byte, error)
}

// Name is the usual name of the directory.
const Name = "recalled"

const (
	magic   = "stRc"
	version = 1

	headLen  = 8 // magic, version, whether it is sealed, two zeros
	saltLen  = 32
	nonceLen = 12
	boxLen   = headLen + 8 + saltLen // before the nonce of a sealed file

	mostBytes = 8 << 20 // of one result
	mostFiles = 128
	namesSalt = "stet recalled results: names"
)

// Store keeps results. It is safe for concurrent use, also by several processes.
type Store struct {
	dir  string
	seal Sealer // nil leaves files plain
}

// New returns the store in a directory, which need not exist.
func New(dir string, seal Sealer) *Store { return &Store{dir: dir, seal: seal} }

// Get returns the result with a name, or nil.
func (s *Store) Get(name string) []byte {
	path, err := s.path(name)
	if err != nil {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil || info.Size() < headLen || info.Size() > mostBytes+boxLen+sha256.Size {
		return nil
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil
	}
	return s.open(name, data)
}

// Put keeps a result. A large one is not kept, and others that were put long ago may go.
func (s *Store) Put(name string, data []byte) {
	if len(data) > mostBytes {
		return
	}
	path, err := s.path(name)
	if err != nil {
		return
	}
	file, err := s.close(name, data)
	if err != nil || os.MkdirAll(s.dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(s.dir, "tmp-") // of mode 0600
	if err != nil {
		return
	}
	_, err = f.Write(file)
	if err = errors.Join(err, f.Close()); err == nil {
		err = osfile.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // or it is removed as one of the oldest
		return
	}
	s.limit()
}

// Drop removes all results.
func (s *Store) Drop() error { return os.RemoveAll(s.dir) }

// limit removes the oldest files where there are too many, and plain ones of an encrypted
// store, which a process may have put that opened it before it was encrypted.
func (s *Store) limit() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	if s.seal != nil {
		for _, e := range entries {
			if path := filepath.Join(s.dir, e.Name()); isPlain(path) {
				_ = os.Remove(path) // the next Put tries again
			}
		}
	}
	if len(entries) <= mostFiles {
		return
	}
	files := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // else it is gone
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files[:max(0, len(files)-mostFiles)] {
		_ = os.Remove(filepath.Join(s.dir, f.Name())) // the next Put tries again
	}
}

func isPlain(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // only read
	var start [headLen]byte
	_, err = f.ReadAt(start[:], 0)
	return err == nil && bytes.Equal(start[:], head(0))
}

// path returns the file of a result. That of an encrypted store depends on a key: names of
// results contain paths, which could be guessed from a plain hash.
func (s *Store) path(name string) (string, error) {
	h := sha256.New()
	if s.seal != nil {
		id, err := s.seal.Active()
		if err != nil {
			return "", err
		}
		key, err := s.seal.Key(id, []byte(namesSalt))
		if err != nil {
			return "", err
		}
		h.Write(key)
	}
	h.Write([]byte(name))
	return filepath.Join(s.dir, hex.EncodeToString(h.Sum(nil)[:16])), nil
}

func head(sealed byte) []byte { return append([]byte(magic), version, sealed, 0, 0) }

// close makes the file of a result.
func (s *Store) close(name string, data []byte) ([]byte, error) {
	if s.seal == nil {
		sum := plainSum(name, data)
		return slices.Concat(head(0), sum[:], data), nil
	}
	id, err := s.seal.Active()
	if err != nil {
		return nil, err
	}
	var random [saltLen + nonceLen]byte
	rand.Read(random[:])
	box := slices.Concat(head(1), id[:], random[:])
	aead, err := s.cipher(id, random[:saltLen])
	if err != nil {
		return nil, err
	}
	return aead.Seal(box, random[saltLen:], data, slices.Concat(box[:boxLen], []byte(name))), nil
}

// open returns the result in a file, or nil.
func (s *Store) open(name string, file []byte) []byte {
	switch {
	case s.seal == nil && bytes.HasPrefix(file, head(0)) && len(file) >= headLen+sha256.Size:
		data := file[headLen+sha256.Size:]
		if plainSum(name, data) == [sha256.Size]byte(file[headLen:]) {
			return data
		}
	case s.seal != nil && bytes.HasPrefix(file, head(1)) && len(file) >= boxLen+nonceLen:
		aead, err := s.cipher([8]byte(file[headLen:]), file[headLen+8:boxLen])
		if err != nil {
			return nil
		}
		nonce, sealed := file[boxLen:boxLen+nonceLen], file[boxLen+nonceLen:]
		data, err := aead.Open(sealed[:0], nonce, sealed, slices.Concat(file[:boxLen], []byte(name)))
		if err == nil {
			return data
		}
	}
	return nil
}

func (s *Store) cipher(id [8]byte, salt []byte) (cipher.AEAD, error) {
	key, err := s.seal.Key(id, salt)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func plainSum(name string, data []byte) [sha256.Size]byte {
	h := sha256.New()
	sum := sha256.Sum256([]byte(name))
	h.Write(sum[:])
	h.Write(data)
	return [sha256.Size]byte(h.Sum(nil))
}
