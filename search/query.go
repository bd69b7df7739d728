package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a query. What is beyond them is ignored: nobody types it.
const (
	maxQuery = 4096
	maxTerms = 32
)

// query is what a user asks for.
type query struct {
	terms []term
	tools []string // lower case
	roles []string // lower case
}

// term is a word or a phrase.
type term struct {
	text   string
	prefix bool // it may be the beginning of a word
	path   bool // only paths are meant
}

// parseQuery understands every text. Words are separated by spaces, quotes hold a
// phrase together, and path:, tool: and role: before a word or phrase narrow the
// search. Other colons are parts of words. A word at the end may be the beginning
// of one, as its writer may still be typing.
func parseQuery(s string) query {
	s = strings.ToValidUTF8(cut(s, maxQuery), " ")
	var q query
	for len(q.terms)+len(q.tools)+len(q.roles) < maxTerms {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		if s == "" {
			break
		}
		name, rest := filter(s)
		text, quoted, rest := word(rest)
		s = rest
		switch {
		case name == "tool" && text != "":
			q.tools = append(q.tools, strings.ToLower(text))
		case name == "role" && text != "":
			q.roles = append(q.roles, strings.ToLower(text))
		case searchable(text):
			path := name == "path"
			q.terms = append(q.terms, term{text: text, path: path, prefix: long(text) && (path || !quoted && s == "")})
		}
	}
	return q
}

// minPrefix is the length from which a word may be the beginning of others:
// shorter ones begin thousands, and "go" means go.
const minPrefix = 3

func long(text string) bool { return utf8.RuneCountInString(text) >= minPrefix }

// filter takes the name of a filter from the front of s.
func filter(s string) (name, rest string) {
	for _, name := range []string{"path", "tool", "role"} {
		if len(s) > len(name) && s[len(name)] == ':' && strings.EqualFold(s[:len(name)], name) {
			return name, s[len(name)+1:]
		}
	}
	return "", s
}

// word takes a word or a phrase from the front of s. A quote that is not closed
// reaches to the end.
func word(s string) (text string, quoted bool, rest string) {
	if strings.HasPrefix(s, `"`) {
		text, rest, closed := strings.Cut(s[1:], `"`)
		return text, closed, rest
	}
	end := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
	if end < 0 {
		end = len(s)
	}
	return s[:end], false, s[end:]
}

// searchable reports whether text has something that can be found: punctuation is
// not in the index.
func searchable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r) }) >= 0
}

func (q query) empty() bool { return len(q.terms)+len(q.tools)+len(q.roles) == 0 }

// match spells the terms for FTS5. Every term is a string of that language, in
// which only the quote means something.
func (q query) match() string {
	var b strings.Builder
	for i, t := range q.terms {
		if i > 0 {
			b.WriteString(" AND ")
		}
		if t.path {
			b.WriteString("path : ")
		}
		text := strings.ReplaceAll(indexed(t.text), "\x00", " ")
		b.WriteString(`"` + strings.ReplaceAll(text, `"`, `""`) + `"`)
		if t.prefix {
			b.WriteString(" *")
		}
	}
	return b.String()
}

// sameTools are tools that agents call by different names.
var sameTools = [][]string{{"bash", "shell", "pibash"}}

// toolNames returns the names that a filter means.
func toolNames(tools []string) []string {
	all := append([]string(nil), tools...)
	for _, t := range tools {
		for _, group := range sameTools {
			for _, name := range group {
				if name == t {
					all = append(all, group...)
				}
			}
		}
	}
	return all
}
