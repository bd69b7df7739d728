package jsonl

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the text of a JSON string. It is for values that a decoder has checked
// but not decoded, such as a json.RawMessage: most of a record is strings within
// strings, and the decoder would read each byte of them twice more. ok is false for
// other values.
func Text(raw []byte) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	if !utf8.Valid(raw) {
		return text, json.Unmarshal(raw, &text) == nil
	}
	rest := raw[1 : len(raw)-1]
	next := bytes.IndexByte(rest, '\\')
	if next < 0 {
		return string(rest), true
	}
	var b strings.Builder
	b.Grow(len(rest))
	for ; next >= 0; next = bytes.IndexByte(rest, '\\') {
		b.Write(rest[:next])
		if rest, ok = unescape(&b, rest[next+1:]); !ok {
			return "", false
		}
	}
	b.Write(rest)
	return b.String(), true
}

// escapes are the characters that one letter stands for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape writes the character of an escape and returns what follows. It gets what is
// behind the backslash.
func unescape(b *strings.Builder, in []byte) (rest []byte, ok bool) {
	if len(in) == 0 {
		return nil, false
	}
	if c := escapes[in[0]]; c != 0 {
		b.WriteByte(c)
		return in[1:], true
	}
	r, ok := hex(in)
	if !ok {
		return nil, false
	}
	rest = in[5:]
	if utf16.IsSurrogate(r) {
		low, ok := rune(0), false
		if bytes.HasPrefix(rest, []byte("\\")) {
			low, ok = hex(rest[1:])
		}
		if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
			rest = rest[6:]
		} else {
			r = utf8.RuneError
		}
	}
	b.WriteRune(r)
	return rest, true
}

// hex reads u and four digits.
func hex(in []byte) (rune, bool) {
	if len(in) < 5 || in[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(in[1:5]), 16, 32)
	return rune(n), err == nil
}
