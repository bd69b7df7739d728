package retrying

import (
	"errors"
	"io"
)

// source is a stream that can be read again from where it began, and remembers
// whether it failed, because its own failure is not the store's.
type source struct {
	r      io.Reader
	start  int64
	failed bool
}

// mark remembers where the stream begins and reports whether it can seek back.
func (s *source) mark() bool {
	seeker, ok := s.r.(io.Seeker)
	if !ok {
		return false
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	s.start = start
	return err == nil // a pipe also has the method, but it fails
}

func (s *source) rewind() error {
	_, err := s.r.(io.Seeker).Seek(s.start, io.SeekStart)
	return err
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = true
	}
	return n, err
}
