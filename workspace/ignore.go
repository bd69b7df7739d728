package workspace

import (
	"bytes"
	"crypto/sha256"
	"strings"
)

// The ignore files, in rising order of priority: a rule of any .stetignore beats
// every rule of a .gitignore, which beats .git/info/exclude. Within one kind the
// file nearest to the path wins, within a file the last line that matches.
const (
	gitIgnoreName  = ".gitignore"
	stetIgnoreName = ".stetignore"
	gitInfoPath    = ".git/info"
	excludeName    = "exclude"

	// maxIgnoreFile is the size limit of an ignore file. Larger ones are ignored; git
	// does so at 100 MiB.
	maxIgnoreFile = 4 << 20
)

// IsIgnoreFile reports whether a file of that name holds ignore rules for its
// directory.
func IsIgnoreFile(name string) bool { return name == gitIgnoreName || name == stetIgnoreName }

// ruleSum is a fingerprint of all rules that apply to a directory.
type ruleSum [8]byte

// rules are the ignore rules of one directory: its own files and, by parent,
// those of the directories above. A nil *rules ignores nothing.
type rules struct {
	parent    *rules
	base      string // the directory, "" or without a slash at its end
	git, stet []pattern
	exclude   []pattern // .git/info/exclude, at the root only
	sum       ruleSum
}

// newRules adds the ignore files of directory base to those above it. Without
// any content it returns parent.
func newRules(parent *rules, base string, git, stet, exclude []byte) *rules {
	if len(git) == 0 && len(stet) == 0 && len(exclude) == 0 {
		return parent
	}
	r := &rules{parent: parent, base: base, git: parseIgnore(git), stet: parseIgnore(stet), exclude: parseIgnore(exclude)}
	h := sha256.New()
	above := parent.fingerprint()
	h.Write(above[:])
	for _, part := range [][]byte{[]byte(base), git, stet, exclude} {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	r.sum = ruleSum(h.Sum(nil))
	return r
}

func (r *rules) fingerprint() ruleSum {
	if r == nil {
		return ruleSum{}
	}
	return r.sum
}

// ignores reports whether the rules exclude a path whose parent directories are
// not excluded.
func (r *rules) ignores(path, name string, isDir bool) bool {
	for x := r; x != nil; x = x.parent {
		if p := lastMatch(x.stet, x.base, path, name, isDir); p != nil {
			return !p.negative
		}
	}
	for x := r; x != nil; x = x.parent {
		if p := lastMatch(x.git, x.base, path, name, isDir); p != nil {
			return !p.negative
		}
	}
	for x := r; x != nil; x = x.parent {
		if p := lastMatch(x.exclude, x.base, path, name, isDir); p != nil {
			return !p.negative
		}
	}
	return false
}

// allows reports whether a .stetignore file says that a file is not ignored.
func (r *rules) allows(path, name string) bool {
	for x := r; x != nil; x = x.parent {
		if p := lastMatch(x.stet, x.base, path, name, false); p != nil {
			return p.negative
		}
	}
	return false
}

func lastMatch(list []pattern, base, path, name string, isDir bool) *pattern {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].matches(base, path, name, isDir) {
			return &list[i]
		}
	}
	return nil
}

// pattern is one line of an ignore file.
type pattern struct {
	text     string // without ! and trailing /; for a path pattern also without leading /
	literal  int    // length of the prefix of text without a wildcard
	negative bool   // !pattern: not ignored
	dirOnly  bool   // pattern/
	anyDir   bool   // no slash: compared with the name only
	suffix   bool   // * and then no wildcard
}

// parseIgnore reads an ignore file. Every input is valid, as in git.
func parseIgnore(data []byte) []pattern {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var list []pattern
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if i := bytes.IndexByte(line, 0); i >= 0 {
			line = line[:i] // where git's C string ends
		}
		if p, ok := parsePattern(trimSpaces(string(line))); ok {
			list = append(list, p)
		}
	}
	return list
}

// trimSpaces drops unescaped spaces from the end of a line.
func trimSpaces(line string) string {
	end := -1
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			if end < 0 {
				end = i
			}
			continue
		case '\\':
			i++
			if i == len(line) {
				return line
			}
		}
		end = -1
	}
	if end >= 0 {
		return line[:end]
	}
	return line
}

func parsePattern(text string) (pattern, bool) {
	var p pattern
	if strings.HasPrefix(text, "!") {
		p.negative = true
		text = text[1:]
	}
	p.suffix = strings.HasPrefix(text, "*") && plainLength(text[1:]) == len(text)-1
	if strings.HasSuffix(text, "/") {
		p.dirOnly = true
		text = text[:len(text)-1]
	}
	if text == "" {
		return p, false // matches no name
	}
	p.anyDir = !strings.Contains(text, "/")
	p.text = strings.TrimPrefix(text, "/")
	p.literal = plainLength(p.text)
	return p, true
}

// plainLength returns the number of bytes before the first wildcard.
func plainLength(s string) int {
	if i := strings.IndexAny(s, `*?[\`); i >= 0 {
		return i
	}
	return len(s)
}

// matches reports whether the pattern, from the ignore file of directory base,
// matches a path.
func (p *pattern) matches(base, path, name string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if p.anyDir {
		switch {
		case p.literal == len(p.text):
			return p.text == name
		case p.suffix:
			return strings.HasSuffix(name, p.text[1:])
		}
		return wildmatch(p.text, name, false)
	}
	if base != "" {
		path = path[len(base)+1:] // rules are used only for paths below their directory
	}
	if !strings.HasPrefix(path, p.text[:p.literal]) {
		return false
	}
	rest := path[p.literal:]
	if p.literal == len(p.text) {
		return rest == ""
	}
	return wildmatch(p.text[p.literal:], rest, true)
}
