package proof

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/stet-dev/stet/blob"
)

const (
	formatName    = "stet-proof"
	formatVersion = 1
	// signedPrefix begins the signed bytes, so that the signature means nothing
	// elsewhere.
	signedPrefix = "stet-proof-v1\x00"
	// maxLine is the longest line. A blob of 64 MiB, the largest that conversations and
	// workspaces store, fits.
	maxLine = 96 << 20
	maxBlob = 64 << 20
)

// head is the first line.
type head struct {
	Format       string  `json:"format"`
	Version      int     `json:"version"`
	Time         string  `json:"time"`
	Conversation string  `json:"conversation,omitempty"`
	Checkpoint   string  `json:"checkpoint,omitempty"`
	Contents     bool    `json:"contents"`
	Log          logHead `json:"log"`
	Groups       uint64  `json:"groups"`
	Root         blob.ID `json:"root"`
}

type logHead struct {
	Entries uint64  `json:"entries"`
	Link    blob.ID `json:"link"`
}

// line is any line between the first and the last.
type line struct {
	After  *uint64  `json:"after,omitempty"`
	Link   *blob.ID `json:"link,omitempty"`
	Digest *blob.ID `json:"digest,omitempty"`
	Group  string   `json:"group,omitempty"`
	Rows   uint64   `json:"rows,omitempty"`
	Key    string   `json:"key,omitempty"`
	Value  []byte   `json:"value,omitempty"`
	Hidden uint64   `json:"hidden,omitempty"`
	Hash   *blob.ID `json:"hash,omitempty"`
	Blob   *[]byte  `json:"blob,omitempty"`
	Gone   *blob.ID `json:"gone,omitempty"`
}

// end is the last line.
type end struct {
	Key       string `json:"key"`
	Signature []byte `json:"signature"`
}

// printer writes lines and remembers their hash.
type printer struct {
	out *bufio.Writer
	sum hash.Hash
}

func newPrinter(w io.Writer) *printer {
	return &printer{out: bufio.NewWriterSize(w, 64<<10), sum: sha256.New()}
}

func (p *printer) print(value any) error {
	data, err := encode(value)
	if err != nil {
		return err
	}
	p.sum.Write(data)
	_, err = p.out.Write(data)
	return err
}

func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return buf.Bytes(), err
}

// scanner reads lines and keeps the last one, which is not signed, apart.
type scanner struct {
	in    *bufio.Reader
	sum   hash.Hash
	ahead []byte // the line after those that were read, nil at the end
	read  int    // lines
	peek  *line
	last  []byte // set at the end
}

func newScanner(r io.Reader) (*scanner, error) {
	s := &scanner{in: bufio.NewReaderSize(r, 64<<10), sum: sha256.New()}
	return s, s.fill()
}

// fill reads the next line.
func (s *scanner) fill() error {
	var raw []byte
	for {
		part, err := s.in.ReadSlice('\n')
		if len(raw)+len(part) > maxLine {
			return broken("line %d is longer than %d bytes", s.read+1, maxLine)
		}
		raw = append(raw, part...)
		switch {
		case err == nil:
			s.ahead = raw
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(raw) == 0:
			s.ahead = nil
			return nil
		case errors.Is(err, io.EOF):
			return broken("it is cut off in line %d", s.read+1)
		default:
			return fmt.Errorf("read proof: %w", err)
		}
	}
}

// raw returns the next line, or nil if only the last one is left.
func (s *scanner) raw() ([]byte, error) {
	if s.last != nil {
		return nil, nil
	}
	raw := s.ahead
	if raw == nil {
		return nil, broken("it is empty")
	}
	s.read++
	if err := s.fill(); err != nil {
		return nil, err
	}
	if s.ahead == nil {
		s.last = raw
		return nil, nil
	}
	s.sum.Write(raw)
	return raw, nil
}

// look returns the next line without taking it, or nil if only the last one is left.
func (s *scanner) look() (*line, error) {
	if s.peek != nil {
		return s.peek, nil
	}
	raw, err := s.raw()
	if err != nil || raw == nil {
		return nil, err
	}
	l := new(line)
	if err := s.decode(raw, l); err != nil {
		return nil, err
	}
	s.peek = l
	return l, nil
}

// take drops the line that look returned.
func (s *scanner) take() { s.peek = nil }

func (s *scanner) decode(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil && dec.InputOffset() != int64(len(raw)-1) {
		err = errors.New("more than one value")
	}
	if err != nil {
		return broken("line %d: %v", s.read, err)
	}
	return nil
}
