package jsonl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/stet-dev/stet/foreign"
)

// Compressed is the suffix of files whose text is compressed with zstd.
const Compressed = ".zst"

// maxWindow is the largest window of a compressed file that is read. It bounds the memory:
// the usual levels of zstd have windows of at most 8 MiB.
const maxWindow = 16 << 20

// Name returns the name that a file has while it is not compressed.
func Name(path string) string { return strings.TrimSuffix(path, Compressed) }

// Present returns the present name of a file: it may have been compressed, or
// unpacked, since its path became known. It returns the path itself if neither file
// exists.
func Present(path string) string {
	other := path + Compressed
	if Name(path) != path {
		other = Name(path)
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(other); err == nil {
			return other
		}
	}
	return path
}

// Open opens the text of a file. A compressed one is decompressed while it is read.
// If it is damaged, Read returns everything that can be read and then an error that
// wraps foreign.ErrUnreadable.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", foreign.ErrUnreadable, err)
	}
	if Name(path) == path {
		return f, nil
	}
	d, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: %s: %w", foreign.ErrUnreadable, path, err)
	}
	return &unpacked{file: f, decoder: d}, nil
}

// unpacked is the text of a compressed file.
type unpacked struct {
	file    *os.File
	decoder *zstd.Decoder
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.decoder.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %s: %w", foreign.ErrUnreadable, u.file.Name(), err)
	}
	return n, err
}

func (u *unpacked) Close() error {
	u.decoder.Close()
	return u.file.Close()
}

// skip skips some bytes. If there are fewer, the error is foreign.ErrMark, here or at
// the next read.
func skip(r io.Reader, n int64) error {
	if s, ok := r.(io.Seeker); ok {
		_, err := s.Seek(n, io.SeekCurrent)
		return err
	}
	_, err := io.CopyN(io.Discard, r, n)
	if err == io.EOF {
		return fmt.Errorf("%w: offset %d is behind the end of the file", foreign.ErrMark, n)
	}
	return err
}
