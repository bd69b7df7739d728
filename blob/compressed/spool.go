package compressed

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
)

// spoolMemory is how much a spool holds before it uses a file.
const spoolMemory = 4 << 20

// spool keeps bytes until their number is known. Bytes that do not fit into memory go to
// a temporary file, encrypted with a key that only this value has: the store below may be
// encrypted, and its contents must not stay readable in the temporary directory after a
// crash.
type spool struct {
	size     int64
	memory   bytes.Buffer
	file     *os.File
	unlinked bool      // the name of file is removed
	out      io.Writer // to file
	block    cipher.Block
}

func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && s.memory.Len()+len(p) > spoolMemory {
		if err := s.open(); err != nil {
			return 0, fmt.Errorf("open spool: %w", err)
		}
	}
	var n int
	var err error
	if s.file == nil {
		n, err = s.memory.Write(p)
	} else {
		n, err = s.out.Write(p)
	}
	s.size += int64(n)
	return n, err
}

func (s *spool) open() error {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	if s.file, err = os.CreateTemp("", "stet-spool-*"); err != nil {
		return err
	}
	// If the system can unlink an open file, a killed process leaves nothing behind.
	s.unlinked = os.Remove(s.file.Name()) == nil
	s.block = block
	s.out = &cipher.StreamWriter{S: s.cipher(), W: s.file}
	return nil
}

// cipher starts at the beginning of the file. The key is used for one spool
// only, so the counter may start at zero.
func (s *spool) cipher() cipher.Stream {
	return cipher.NewCTR(s.block, make([]byte, aes.BlockSize))
}

// reader returns what was written.
func (s *spool) reader() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes()), nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind spool: %w", err)
	}
	return io.MultiReader(bytes.NewReader(s.memory.Bytes()), &cipher.StreamReader{S: s.cipher(), R: s.file}), nil
}

// close removes the file.
func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if !s.unlinked {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}
