// Package highlight splits a text into the tokens of its language, within fixed
// limits of size and time, because texts come from any agent's output. The language
// is determined by the name of a file or of the language itself.
//
// Nothing happens before the first call. Every hook of an agent starts a command, and
// initialising chroma's own package of lexers takes longer than the work of such a
// command. So this package has the rules of the lexers as data, lexers.zip, made from
// the module by `go generate`, and reads it when the first text is shown.
//
//	tokens := highlight.Text(ctx, "main.go", text) // or "go"
//	if tokens == nil {
//		return plain
//	}
//
// Two of chroma's languages are omitted, Haxe and Raku, because their rules are code;
// and code blocks in reStructuredText are strings. Rendering the tokens is left to
// the caller.
package highlight

import (
	"sync"

	"github.com/alecthomas/chroma/v2"
)

//go:generate go run ../tools/lexers .

var registry = sync.OnceValue(load)

// forName returns the lexer for the name of a file, or else of a language, and nil
// if there is none. It may be used by several goroutines at once.
func forName(name string) chroma.Lexer {
	if len(name) > maxName {
		return nil
	}
	name = alike(name)
	lexer, ok := asked.get(name)
	if !ok {
		lexer = find(registry(), name)
		asked.put(name, lexer)
	}
	return lexer
}

// asked caches answers: chroma tries every pattern of every language for each, which
// takes 3 ms, and a page needs the same few languages repeatedly.
var asked answers

const (
	maxName    = 4096 // of a path; longer names are not from a file system
	maxAnswers = 1000
)

type answers struct {
	mu     sync.Mutex
	byName map[string]chroma.Lexer // guarded by mu
}

func (a *answers) get(name string) (lexer chroma.Lexer, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lexer, ok = a.byName[name]
	return lexer, ok
}

// put clears the cache when it is large, because names come from outside.
func (a *answers) put(name string, lexer chroma.Lexer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byName == nil || len(a.byName) >= maxAnswers {
		a.byName = make(map[string]chroma.Lexer)
	}
	a.byName[name] = lexer
}
