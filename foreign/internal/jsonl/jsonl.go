// Package jsonl reads files of JSON lines that another program is writing: it
// promises bounded memory, offsets at which reading can continue, and that a line
// that is still being written is not mistaken for a damaged one. A file may be
// compressed: offsets refer to its text, so reading continues as before if a file is
// compressed later.
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
	"strconv"

	"github.com/stet-dev/stet/foreign"
)

// Limits of a line, whatever its length in the file.
const (
	// LongLine is the length from which a line is shortened: of each text in it only
	// LongText bytes are kept, and a note says how many there are more. A line of any
	// length can thus be parsed in bounded memory.
	LongLine = 2 << 20
	// LongText is less than the mebibyte of a text that package turns keeps, which then
	// adds no second note.
	LongText = 1<<20 - 1<<10
	// MaxLine is the longest line that is read, after it was shortened.
	MaxLine = 8 << 20
)

// Line is one line of a file.
type Line struct {
	// Offset is where the line begins, End where the next one does.
	Offset, End int64
	// Size is the length of the line in the file without its end.
	Size int64
	// Data is the line without its end. It is valid until the next line is read.
	Data []byte
	// Short means that Data is not what the file has: long texts were shortened.
	Short bool

	tail []byte // the end of a shortened line as the file has it
}

// Lines returns the non-empty lines of a file from an offset on. For a line that is
// longer than MaxLine even after it was shortened, it yields an error that wraps
// foreign.ErrUnreadable and names file and line, and continues. The last line of a
// file may lack its end; it is returned if it is a whole JSON value. An offset beyond
// the end of the file gives foreign.ErrMark. If a compressed file is damaged, the
// lines before the damage are returned and then an error that wraps
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
		r := &reader{path: path, buf: buf, at: from}
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
	path string
	buf  *bufio.Reader
	at   int64
	line []byte
}

// next reads one line, empty or not.
func (r *reader) next() (Line, error) {
	out := Line{Offset: r.at}
	r.line = r.line[:0]
	var long *shortener
	for {
		part, err := r.buf.ReadSlice('\n')
		r.at += int64(len(part))
		switch {
		case long != nil:
			long.add(part)
		case len(r.line)+len(part) > LongLine:
			long = &shortener{}
			long.add(r.line)
			long.add(part)
		default:
			r.line = append(r.line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		out.End = r.at
		return r.finish(out, long, err)
	}
}

// finish returns a line that was read until its end, or until an error.
func (r *reader) finish(out Line, long *shortener, err error) (Line, error) {
	out.Data = r.line
	if long != nil {
		out.Data, out.Short, out.tail = long.out, long.cut, bytes.TrimRight(long.tail, "\r\n")
	}
	over := long != nil && long.over
	switch {
	case err == nil && over:
		return out, r.tooLong(out)
	case err == nil, err == io.EOF && !over && json.Valid(out.Data):
		end := len(out.Data)
		out.Data = bytes.TrimRight(out.Data, "\r\n")
		out.Size = out.End - out.Offset - int64(end-len(out.Data))
		return out, nil
	default:
		// At the end of the file the line is still being written. After damage it is
		// unknown how it continues.
		out.End = out.Offset
		return out, err
	}
}

// tooLong returns the error for a line, with its number as editors count lines.
func (r *reader) tooLong(l Line) error {
	place := fmt.Sprintf("at byte %d", l.Offset)
	if n, err := countLines(r.path, l.Offset); err == nil {
		place = strconv.FormatInt(n+1, 10)
	}
	return fmt.Errorf("%w: %s, line %s: %d bytes, and more than %d MiB without its long texts; only the raw record has it",
		errLong, r.path, place, l.End-l.Offset, MaxLine>>20)
}

// countLines counts the lines of a file before an offset.
func countLines(path string, before int64) (n int64, err error) {
	f, err := Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	in, buf := io.LimitReader(f, before), make([]byte, bufferSize)
	for {
		k, err := in.Read(buf)
		n += int64(bytes.Count(buf[:k], []byte("\n")))
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
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
