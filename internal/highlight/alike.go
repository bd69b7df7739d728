package highlight

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// stem replaces the name of a file that only its extension distinguishes.
const stem = "filename"

// backups are suffixes that chroma ignores: a.go.orig is Go.
var backups = []string{
	"~", ".bak", ".old", ".orig", ".dpkg-dist", ".dpkg-old", ".ucf-dist", ".ucf-new", ".ucf-old",
	".rpmnew", ".rpmorig", ".rpmsave", ".in",
}

// particular has what distinguishes files by more than an extension.
type particular struct {
	globs []string        // all but those such as *.go
	words map[string]bool // names of languages, in lower case
}

var particulars = sync.OnceValue(func() *particular {
	p := &particular{words: map[string]bool{}}
	for _, lexer := range registry().Lexers {
		c := lexer.Config()
		for _, glob := range slices.Concat(c.Filenames, c.AliasFilenames) {
			if ext, plain := strings.CutPrefix(glob, "*."); !plain || strings.ContainsAny(ext, `*?[\.`) {
				p.globs = append(p.globs, glob)
			}
		}
		for _, word := range append([]string{c.Name}, c.Aliases...) {
			p.words[strings.ToLower(word)] = true
		}
	}
	return p
})

// alike returns a name for which find gives the same answer. Files that differ only
// before their extension share one, so that a page with a thousand of them looks up
// once.
func alike(name string) string {
	base := filepath.Base(name)
	ext := filepath.Ext(base)
	if len(ext) < 2 || particulars().applies(name, base) {
		return name
	}
	return stem + ext
}

func (p *particular) applies(name, base string) bool {
	if p.words[strings.ToLower(name)] || slices.ContainsFunc(backups, func(end string) bool { return strings.HasSuffix(base, end) }) {
		return true
	}
	asked := filepath.Base(stem + "." + name) // find also tries it as an extension
	for _, glob := range p.globs {
		for _, text := range []string{base, asked} {
			if ok, err := filepath.Match(glob, text); ok || err != nil {
				return true
			}
		}
	}
	return false
}

func find(r *chroma.LexerRegistry, name string) chroma.Lexer {
	if lexer := r.Match(name); lexer != nil {
		return lexer
	}
	return r.Get(name)
}
