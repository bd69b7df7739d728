package jsonl

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// shortener takes a line in parts and keeps it without most of its long texts. It
// needs as much memory as it keeps, at most MaxLine.
type shortener struct {
	out  []byte // what is kept
	cut  bool   // something was left out
	over bool   // what would be kept is longer than MaxLine
	tail []byte // the last bytes of the line as they came

	inside  bool  // of a text
	escaped bool  // behind a backslash
	hex     int   // digits of a \u that are to come
	kept    int   // bytes of the text that were kept
	lost    int64 // bytes of the text that were left out
}

// add takes the next part of the line.
func (s *shortener) add(part []byte) {
	s.keepTail(part)
	for len(part) > 0 {
		if s.over {
			return
		}
		n := 0
		if s.inside {
			n = s.text(part)
		} else if n = bytes.IndexByte(part, '"') + 1; n > 0 {
			s.keep(part[:n])
			s.inside, s.kept, s.lost = true, 0, 0
		} else {
			n = len(part)
			s.keep(part)
		}
		part = part[n:]
	}
}

// text takes bytes inside a text up to its end and returns how many.
func (s *shortener) text(part []byte) int {
	room := LongText - s.kept
	for i, c := range part {
		whole := !s.escaped && s.hex == 0 && utf8.RuneStart(c) // a character begins here
		if whole && (s.lost > 0 || i >= room) && c != '"' {
			s.take(part[:i])
			return i + s.leave(part[i:])
		}
		switch {
		case s.escaped:
			if s.escaped = false; c == 'u' {
				s.hex = 4
			}
		case s.hex > 0:
			s.hex--
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.take(part[:i])
			s.end()
			return i + 1
		}
	}
	s.take(part)
	return len(part)
}

// take keeps bytes of a text, unless it is cut already.
func (s *shortener) take(part []byte) {
	if s.lost == 0 {
		s.keep(part)
		s.kept += len(part)
		return
	}
	s.lost += int64(len(part))
}

// leave leaves out bytes of a text up to its end, from where a character begins, and
// returns how many.
func (s *shortener) leave(part []byte) int {
	for i, c := range part {
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.lost += int64(i)
			s.end()
			return i + 1
		}
	}
	s.lost += int64(len(part))
	return len(part)
}

// end ends a text.
func (s *shortener) end() {
	if s.lost > 0 {
		s.cut = true
		s.keep(fmt.Appendf(nil, `\n[… %d bytes more in the original record]`, s.lost))
	}
	s.keep([]byte{'"'})
	s.inside = false
}

func (s *shortener) keep(part []byte) {
	if len(s.out)+len(part) > MaxLine {
		s.out, s.over = nil, true
	}
	if !s.over {
		s.out = append(s.out, part...)
	}
}

// keepTail keeps what a sum of the line needs.
func (s *shortener) keepTail(part []byte) {
	const most = sumSize + 2 // and the end of the line
	s.tail = append(s.tail, part[max(0, len(part)-most):]...)
	if extra := len(s.tail) - most; extra > 0 {
		s.tail = append(s.tail[:0], s.tail[extra:]...)
	}
}
