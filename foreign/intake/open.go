package intake

import (
	"bytes"
	"io"
	"math"
	"os"

	"github.com/stet-dev/stet/foreign"
)

// source is the content of a part of a record.
type source interface {
	io.ReaderAt
	io.Closer
}

// open opens a part of a record, with its size at this moment. For content that is
// produced while it is read, the size is unknownSize, and reads end with io.EOF.
func open(f foreign.File) (source, int64, error) {
	if f.Open != nil {
		return &stream{open: f.Open}, unknownSize, nil
	}
	if f.Path == "" {
		return memory{bytes.NewReader(f.Data)}, int64(len(f.Data)), nil
	}
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

const unknownSize = math.MaxInt64

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// stream reads content that can only be read forward. A read before the current
// position opens the content again.
type stream struct {
	open func() (io.ReadCloser, error)
	in   io.ReadCloser // nil before the first read
	at   int64
}

func (s *stream) ReadAt(p []byte, at int64) (int, error) {
	if s.in == nil || at < s.at {
		if err := s.Close(); err != nil {
			return 0, err
		}
		in, err := s.open()
		if err != nil {
			return 0, err
		}
		s.in, s.at = in, 0
	}
	n, err := io.CopyN(io.Discard, s.in, at-s.at)
	s.at += n
	if err != nil {
		return 0, err
	}
	read, err := io.ReadFull(s.in, p)
	s.at += int64(read)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return read, err
}

func (s *stream) Close() error {
	if s.in == nil {
		return nil
	}
	in := s.in
	s.in = nil
	return in.Close()
}
