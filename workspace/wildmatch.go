package workspace

import "strings"

// wildmatch reports whether a shell pattern matches a text, as in git. With pathname,
// * and ? stop at slashes and ** as a whole component does not.
func wildmatch(pattern, text string, pathname bool) bool {
	m := matcher{pattern: pattern, text: text, pathname: pathname, steps: maxMatchSteps}
	return m.match(0, 0) == fits
}

// maxMatchSteps limits the work for a hostile pattern, such as a long row of **/ ;
// beyond it the pattern matches nothing. Real patterns take a few hundred steps.
const maxMatchSteps = 1 << 20

type outcome int

const (
	fits outcome = iota
	differs
	hopeless     // extending an earlier * cannot help
	hopelessHere // nor can a * that stops at slashes, but a ** may
)

type matcher struct {
	pattern, text string
	pathname      bool
	steps         int
}

// at returns the byte at i, or 0 past the end; patterns and names hold no NUL.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// match compares the pattern from p with the text from t.
func (m *matcher) match(p, t int) outcome {
	start := p
	for ; p < len(m.pattern); p, t = p+1, t+1 {
		if m.steps--; m.steps < 0 {
			return hopeless
		}
		pc, tc := m.pattern[p], at(m.text, t)
		if tc == 0 && pc != '*' {
			return hopeless
		}
		switch pc {
		case '\\':
			p++
			if at(m.pattern, p) != tc {
				return differs
			}
		case '?':
			if m.pathname && tc == '/' {
				return differs
			}
		case '[':
			next, ok, malformed := m.class(p, tc)
			if malformed {
				return hopeless
			}
			if !ok || m.pathname && tc == '/' {
				return differs
			}
			p = next
		case '*':
			done, nextP, nextT := m.star(start, p, t)
			if nextP < 0 {
				return done
			}
			p, t = nextP, nextT
		default:
			if pc != tc {
				return differs
			}
		}
	}
	if t < len(m.text) {
		return differs
	}
	return fits
}

// star handles one or more asterisks at p. It returns the outcome or, with a
// non-negative place, the positions in pattern and text after a */ .
func (m *matcher) star(start, p, t int) (outcome, int, int) {
	crosses := !m.pathname // whether the asterisk matches slashes
	first := p
	for p++; at(m.pattern, p) == '*'; p++ {
	}
	if m.pathname && p-first > 1 {
		// Like git, look back only to the start of this part of the pattern.
		opens := first == start || m.pattern[first-1] == '/'
		closes := p == len(m.pattern) || m.pattern[p] == '/' || strings.HasPrefix(m.pattern[p:], `\/`)
		if opens && closes {
			if at(m.pattern, p) == '/' && m.match(p+1, t) == fits {
				return fits, -1, 0
			}
			crosses = true
		}
	}
	if p == len(m.pattern) {
		if !crosses && strings.IndexByte(m.text[t:], '/') >= 0 {
			return differs, -1, 0
		}
		return fits, -1, 0
	}
	if !crosses && m.pattern[p] == '/' {
		slash := strings.IndexByte(m.text[t:], '/')
		if slash < 0 {
			return differs, -1, 0
		}
		return fits, p, t + slash
	}
	return m.stretch(p, t, crosses), -1, 0
}

// stretch tries every length of text for an asterisk; the pattern continues at p.
func (m *matcher) stretch(p, t int, crosses bool) outcome {
	next := m.pattern[p]
	plain := next != '*' && next != '?' && next != '[' && next != '\\'
	for t < len(m.text) {
		if plain {
			for t < len(m.text) && m.text[t] != next && (crosses || m.text[t] != '/') {
				t++
			}
			if at(m.text, t) != next {
				return differs
			}
		}
		if got := m.match(p, t); got != differs {
			if !crosses || got != hopelessHere {
				return got
			}
		} else if !crosses && m.text[t] == '/' {
			return hopelessHere
		}
		t++
	}
	return hopeless
}

// class compares one byte with the set that opens at p. It returns the place of
// the closing bracket, and whether the byte is in the set.
func (m *matcher) class(p int, tc byte) (end int, ok, malformed bool) {
	s := m.pattern
	p++
	negated := at(s, p) == '!' || at(s, p) == '^'
	if negated {
		p++
	}
	matched := false
	for prev, c := byte(0), at(s, p); ; {
		switch {
		case c == 0:
			return 0, false, true
		case c == '\\':
			p++
			if c = at(s, p); c == 0 {
				return 0, false, true
			}
			matched = matched || c == tc
		case c == '-' && prev != 0 && at(s, p+1) != 0 && at(s, p+1) != ']':
			p++
			if c = s[p]; c == '\\' {
				p++
				if c = at(s, p); c == 0 {
					return 0, false, true
				}
			}
			matched = matched || prev <= tc && tc <= c
			c = 0 // a range cannot start another
		case c == '[' && at(s, p+1) == ':':
			from := p + 2
			length := strings.IndexByte(s[min(from, len(s)):], ']')
			if length < 0 {
				return 0, false, true
			}
			if length == 0 || s[from+length-1] != ':' {
				matched = matched || tc == '['
				break // not a named class: a literal bracket
			}
			in, known := inNamedClass(s[from:from+length-1], tc)
			if !known {
				return 0, false, true
			}
			matched = matched || in
			p, c = from+length, 0
		default:
			matched = matched || c == tc
		}
		prev = c
		p++
		if c = at(s, p); c == ']' {
			return p, matched != negated, false
		}
	}
}

// inNamedClass reports whether an ASCII byte is in [:name:].
func inNamedClass(name string, c byte) (in, known bool) {
	lower, upper := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z'
	digit := c >= '0' && c <= '9'
	graph := c > ' ' && c < 0x7f
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || c >= '\t' && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F', true
	}
	return false, false
}
