// Package highlight splits a text into the tokens of its language, within fixed
// limits of size and time: texts come from any agent's output. The language is found
// by the name of a file or of the language itself.
//
// Nothing happens before the first question. A command line starts in every hook of
// an agent, and chroma's own package of lexers takes longer to set itself up than
// such a command to do its work. So this package has the rules of the lexers as
// data, lexers.zip, made from the module by `go generate`, and reads it when the
// first text is to be shown.
//
//	tokens := highlight.Text(ctx, "main.go", text) // or "go"
//	if tokens == nil {
//		return plain
//	}
//
// Of chroma's languages two are left out, Haxe and Raku, as their rules are code;
// and code blocks in reStructuredText are strings. What becomes of the tokens is the
// caller's business.
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

// asked has answers that were given: chroma tries every pattern of every language
// for each, 3 ms, and a page asks for the same few languages again and again.
var asked answers

const (
	maxName    = 4096 // of a path; what is longer, and not from a file system, is no name
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

// put starts anew when there are many: names come from outside.
func (a *answers) put(name string, lexer chroma.Lexer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byName == nil || len(a.byName) >= maxAnswers {
		a.byName = make(map[string]chroma.Lexer)
	}
	a.byName[name] = lexer
}
