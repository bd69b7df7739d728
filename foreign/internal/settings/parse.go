package settings

import (
	"encoding/json"
	"fmt"

	"github.com/stet-dev/stet/foreign"
)

// node is a value with its place in the text.
type node struct {
	kind       byte // '{', '[' or 0
	start, end int
	parts      []part
}

// part is a member of an object or an element of a list.
type part struct {
	key   string
	start int // of the key, or of the value in a list
	value *node
	comma int // offset of the comma behind it, -1 if there is none
}

func (p part) end() int { return p.value.end }

const maxDepth = 200

// parser reads JSON with comments and commas at the end of lists.
type parser struct {
	src   []byte
	at    int
	depth int
}

// parse returns the value of a file, or nil if the file is blank.
func parse(src []byte) (*node, error) {
	p := &parser{src: src}
	if len(src) >= 3 && string(src[:3]) == "\ufeff" {
		p.at = 3
	}
	start := p.at
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.at == len(src) {
		for _, c := range src[start:] {
			if !blank(c) {
				return nil, p.fail("there is a comment and no value")
			}
		}
		return nil, nil
	}
	root, err := p.value()
	if err != nil {
		return nil, err
	}
	if err := p.space(); err != nil {
		return nil, err
	}
	if p.at < len(src) {
		return nil, p.fail("there is more than one value")
	}
	if root.kind != '{' {
		return nil, fmt.Errorf("%w: the file does not hold an object", foreign.ErrSettings)
	}
	return root, nil
}

func (p *parser) fail(what string) error {
	line := 1
	for _, c := range p.src[:min(p.at, len(p.src))] {
		if c == '\n' {
			line++
		}
	}
	return fmt.Errorf("%w: line %d: %s", foreign.ErrSettings, line, what)
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// space skips blanks and comments.
func (p *parser) space() error {
	for p.at < len(p.src) {
		if blank(p.src[p.at]) {
			p.at++
			continue
		}
		end, ok := comment(p.src, p.at)
		if !ok {
			return nil
		}
		if end < 0 {
			return p.fail("a comment does not end")
		}
		p.at = end
	}
	return nil
}

// comment returns the end of a comment that begins at an offset, -1 if it has none.
func comment(src []byte, at int) (end int, ok bool) {
	if at+1 >= len(src) || src[at] != '/' {
		return 0, false
	}
	switch src[at+1] {
	case '/':
		for at < len(src) && src[at] != '\n' && src[at] != '\r' {
			at++
		}
		return at, true
	case '*':
		for i := at + 2; i+1 < len(src); i++ {
			if src[i] == '*' && src[i+1] == '/' {
				return i + 2, true
			}
		}
		return -1, true
	}
	return 0, false
}

func (p *parser) value() (*node, error) {
	if p.at >= len(p.src) {
		return nil, p.fail("a value is missing")
	}
	switch c := p.src[p.at]; c {
	case '{', '[':
		return p.container(c)
	case '"':
		start := p.at
		_, err := p.text()
		return &node{start: start, end: p.at}, err
	}
	start := p.at
	for p.at < len(p.src) && !blank(p.src[p.at]) && !isPunct(p.src[p.at]) {
		p.at++
	}
	if !json.Valid(p.src[start:p.at]) {
		return nil, p.fail("this is not a JSON value")
	}
	return &node{start: start, end: p.at}, nil
}

func isPunct(c byte) bool {
	return c == ',' || c == ':' || c == '{' || c == '}' || c == '[' || c == ']' || c == '"' || c == '/'
}

// text reads a string.
func (p *parser) text() (s string, err error) {
	start := p.at
	for p.at++; p.at < len(p.src); p.at++ {
		switch p.src[p.at] {
		case '\\':
			p.at++
		case '"':
			p.at++
			if json.Unmarshal(p.src[start:p.at], &s) != nil {
				return "", p.fail("a text is not valid")
			}
			return s, nil
		}
	}
	return "", p.fail("a text does not end")
}

func (p *parser) container(open byte) (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("the values are nested too deep")
	}
	defer func() { p.depth-- }()
	n := &node{kind: open, start: p.at}
	p.at++
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.at < len(p.src) && p.src[p.at] == open+2 { // } and ] follow { and [ at two
			p.at++
			n.end = p.at
			return n, nil
		}
		if len(n.parts) > 0 && n.parts[len(n.parts)-1].comma < 0 {
			return nil, p.fail("a comma is missing")
		}
		part, err := p.part(open)
		if err != nil {
			return nil, err
		}
		n.parts = append(n.parts, part)
	}
}

func (p *parser) part(open byte) (out part, err error) {
	out.start, out.comma = p.at, -1
	if open == '{' {
		if p.at >= len(p.src) || p.src[p.at] != '"' {
			return out, p.fail("a key is missing")
		}
		if out.key, err = p.text(); err != nil {
			return out, err
		}
		if err := p.space(); err != nil {
			return out, err
		}
		if p.at >= len(p.src) || p.src[p.at] != ':' {
			return out, p.fail("a colon is missing")
		}
		p.at++
		if err := p.space(); err != nil {
			return out, err
		}
	}
	if out.value, err = p.value(); err != nil {
		return out, err
	}
	if err := p.space(); err != nil {
		return out, err
	}
	if p.at < len(p.src) && p.src[p.at] == ',' {
		out.comma = p.at
		p.at++
	}
	return out, nil
}
