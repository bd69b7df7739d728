// Package jsonl reads files of JSON lines that another program is writing: it promises
// bounded memory, offsets at which reading can continue, and that a line which is still
// being written is not taken for a damaged one. A file may be compressed: offsets are then
// those of its text, so that a file which is compressed later is read on as before.
package jsonl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/stet-dev/stet/foreign"
)

// MaxLine is the longest line that is read.
const MaxLine = 8 << 20

// Line is one line of a file.
type Line struct {
	// Offset is where the line begins, End where the next one does.
	Offset, End int64
	// Data is the line without its end. It is valid until the next line is read.
	Data []byte
}

// Lines returns the lines of a file from an offset on that are not empty. A line that is
// longer than MaxLine is an error that is foreign.ErrUnreadable, and the next line
// follows. The last line of a file may lack its end; it is returned if it is a whole
// JSON value. An offset behind the end of the file gives foreign.ErrMark. If a compressed
// file is damaged, the lines before the damage are returned and then an error that is
// foreign.ErrUnreadable.
func Lines(ctx context.Context, path string, from int64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		f, err := Open(path)
		if err != nil {
			yield(Line{}, err)
			return
		}
		defer f.Close()
		buf, err := seek(f, from)
		if err != nil {
			yield(Line{}, err)
			return
		}
		r := &reader{buf: buf, at: from}
		for ctx.Err() == nil {
			line, err := r.next()
			switch {
			case err == io.EOF:
				return
			case err == nil && len(bytes.TrimSpace(line.Data)) == 0:
				continue
			}
			if !yield(line, err) || err != nil && !errors.Is(err, errLong) {
				return
			}
		}
		yield(Line{}, ctx.Err())
	}
}

// seek goes to the beginning of a line.
func seek(f io.Reader, from int64) (*bufio.Reader, error) {
	if from == 0 {
		return bufio.NewReaderSize(f, bufferSize), nil
	}
	if from < 0 {
		return nil, fmt.Errorf("%w: offset %d", foreign.ErrMark, from)
	}
	if err := skip(f, from-1); err != nil {
		return nil, err
	}
	buf := bufio.NewReaderSize(f, bufferSize)
	before, err := buf.ReadByte()
	if err == io.EOF {
		return nil, fmt.Errorf("%w: offset %d is behind the end of the file", foreign.ErrMark, from)
	}
	if err != nil {
		return nil, err
	}
	if next, _ := buf.Peek(1); len(next) == 1 && before != '\n' && next[0] != '\n' && next[0] != '\r' {
		return nil, fmt.Errorf("%w: no line begins at byte %d", foreign.ErrMark, from)
	}
	return buf, nil
}

const bufferSize = 64 << 10

// errLong reports a line that is longer than MaxLine. The next one can be read.
var errLong = fmt.Errorf("%w: a line is too long", foreign.ErrUnreadable)

type reader struct {
	buf  *bufio.Reader
	at   int64
	line []byte
}

// next reads one line, empty or not.
func (r *reader) next() (Line, error) {
	out := Line{Offset: r.at}
	r.line = r.line[:0]
	long := false
	for {
		part, err := r.buf.ReadSlice('\n')
		r.at += int64(len(part))
		if long = long || len(r.line)+len(part) > MaxLine; long {
			r.line = r.line[:0]
		} else {
			r.line = append(r.line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		out.End = r.at
		switch {
		case err == nil && long:
			return out, fmt.Errorf("%w: the line at byte %d has %d bytes", errLong, out.Offset, out.End-out.Offset)
		case err == nil:
			out.Data = bytes.TrimRight(r.line, "\r\n")
			return out, nil
		case err == io.EOF && !long && json.Valid(r.line):
			out.Data = r.line
			return out, nil
		default:
			// At the end of the file the line is still being written. Behind damage it is
			// not known how it goes on.
			out.End = out.Offset
			return out, err
		}
	}
}

// Decode decodes the object of a line. A field of another type than expected is left empty:
// an agent that changes one field must not lose the line.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := err.(*json.UnmarshalTypeError); ok && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil
	}
	return err
}
