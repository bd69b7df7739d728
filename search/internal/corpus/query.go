package corpus

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a query. Anything beyond them is ignored.
const (
	maxQuery = 4096
	MaxTerms = 32
)

// Query is a parsed query.
type Query struct {
	Terms []Term
	Tools []string // lower case
	Roles []string // lower case
}

// Term is a word or a phrase.
type Term struct {
	Text   string
	Prefix bool // may be the beginning of a word
	Path   bool // matches only paths
}

// ParseQuery accepts any text. Words are separated by spaces, quotes hold a phrase
// together, and path:, tool: and role: before a word or phrase narrow the search.
// Other colons are parts of words. The last word may be the beginning of a word,
// because the user may still be typing.
func ParseQuery(s string) Query {
	s = strings.ToValidUTF8(Cut(s, maxQuery), " ")
	var q Query
	for len(q.Terms)+len(q.Tools)+len(q.Roles) < MaxTerms {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		if s == "" {
			break
		}
		name, rest := filter(s)
		text, quoted, rest := word(rest)
		s = rest
		switch {
		case name == "tool" && text != "":
			q.Tools = append(q.Tools, strings.ToLower(text))
		case name == "role" && text != "":
			q.Roles = append(q.Roles, strings.ToLower(text))
		case searchable(text):
			path := name == "path"
			q.Terms = append(q.Terms, Term{Text: text, Path: path, Prefix: long(text) && (path || !quoted && s == "")})
		}
	}
	return q
}

// minPrefix is the minimum length of a prefix: shorter ones match thousands of words,
// and "go" means go.
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

// word takes a word or a phrase from the front of s. An unclosed quote extends to the
// end.
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

// searchable reports whether text contains indexed characters: punctuation is not
// indexed.
func searchable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r) }) >= 0
}

// Empty reports whether there is nothing to search for.
func (q Query) Empty() bool { return len(q.Terms)+len(q.Tools)+len(q.Roles) == 0 }

// sameTools groups different names of the same tool.
var sameTools = [][]string{{"bash", "shell", "pibash"}}

// ToolNames returns the names that a filter matches.
func ToolNames(tools []string) []string {
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
