package purge

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/stet-dev/stet/fault"
)

// Limits of a secret. A shorter one would be found by chance in unrelated content; a
// longer one is a file, to be named by its path.
const (
	MinSecret = 8
	MaxSecret = 1 << 20
)

// ErrSecret says that bytes are too short or too long to look for.
var ErrSecret = fault.New(fault.Invalid, "unsuitable secret")

// CheckSecret returns why bytes cannot be looked for, or nil.
func CheckSecret(secret []byte) error {
	switch n := len(secret); {
	case n < MinSecret:
		return fmt.Errorf("%w: %d bytes would be found by chance; at least %d are needed", ErrSecret, n, MinSecret)
	case len(bytes.Trim(secret, "*")) == 0:
		return fmt.Errorf("%w: it looks like what takes the place of a removed secret", ErrSecret)
	case n > MaxSecret:
		return fmt.Errorf("%w: %d bytes; at most %d", ErrSecret, n, MaxSecret)
	}
	return nil
}

// patterns finds any of several strings of bytes.
type patterns struct {
	all     [][]byte
	longest int
	// starts lists them by their first eight bytes, for sets that are searched in one
	// pass.
	starts map[uint64][][]byte
}

// fewPatterns is how many are searched one after the other, which is faster for a few.
const fewPatterns = 12

// newPatterns returns the secrets in the forms in which they are stored: as they are, as
// text of a JSON string, as such text inside another one, and in base64.
func newPatterns(secrets [][]byte) *patterns {
	p := &patterns{starts: make(map[uint64][][]byte)}
	seen := make(map[string]bool)
	for _, secret := range secrets {
		for _, form := range forms(secret) {
			if len(form) < MinSecret || seen[string(form)] {
				continue
			}
			seen[string(form)] = true
			p.all = append(p.all, form)
			p.longest = max(p.longest, len(form))
			start := binary.LittleEndian.Uint64(form)
			p.starts[start] = append(p.starts[start], form)
		}
	}
	return p
}

func forms(secret []byte) [][]byte {
	once := inJSON(secret, false)
	out := [][]byte{secret, once, inJSON(secret, true), inJSON(once, false)}
	if len(secret) < 2*MinSecret {
		return out // the part of base64 that is the same everywhere would be too short
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			padded := append(make([]byte, shift), secret...)
			padded = padded[:len(padded)-len(padded)%3]
			text := enc.EncodeToString(padded)
			out = append(out, []byte(text[(shift*4+2)/3:])) // without what the bytes before change
		}
	}
	return out
}

// inJSON returns bytes as the inside of a JSON string.
func inJSON(text []byte, html bool) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(html)
	if err := enc.Encode(string(text)); err != nil {
		return text
	}
	quoted := bytes.TrimSpace(buf.Bytes())
	return quoted[1 : len(quoted)-1]
}

// in reports whether data contains any of them.
func (p *patterns) in(data []byte) bool {
	if len(p.all) <= fewPatterns {
		for _, one := range p.all {
			if bytes.Contains(data, one) {
				return true
			}
		}
		return false
	}
	found := false
	p.each(data, func(int, int) bool { found = true; return false })
	return found
}

// count returns how often data contains them.
func (p *patterns) count(data []byte) (n int) {
	p.each(data, func(int, int) bool { n++; return true })
	return n
}

// mask returns a copy of data in which they are replaced by asterisks, or nil if data
// contains none. All lengths stay the same, so every structure around them is still
// valid.
func (p *patterns) mask(data []byte) []byte {
	if !p.in(data) {
		return nil
	}
	out := bytes.Clone(data)
	p.each(data, func(at, n int) bool {
		for i := at; i < at+n; i++ {
			out[i] = '*'
		}
		return true
	})
	return out
}

// each calls fn with the place and length of each occurrence, without overlaps, until it
// returns false.
func (p *patterns) each(data []byte, fn func(at, n int) bool) {
	for at := 0; at+MinSecret <= len(data); {
		at += p.next(data[at:])
		n := p.at(data[min(at, len(data)):])
		if n == 0 {
			at++
			continue
		}
		if !fn(at, n) {
			return
		}
		at += n
	}
}

// next returns how many bytes can be skipped.
func (p *patterns) next(data []byte) int {
	if len(p.all) > fewPatterns {
		return 0
	}
	first := len(data)
	for _, one := range p.all {
		if i := bytes.Index(data[:min(len(data), first+len(one))], one); i >= 0 {
			first = min(first, i)
		}
	}
	return first
}

// at returns the length of the longest one that data begins with, or 0.
func (p *patterns) at(data []byte) (n int) {
	if len(data) < MinSecret {
		return 0
	}
	for _, one := range p.starts[binary.LittleEndian.Uint64(data)] {
		if len(one) > n && bytes.HasPrefix(data, one) {
			n = len(one)
		}
	}
	return n
}
