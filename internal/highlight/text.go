package highlight

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
)

// Limits of one text. A text comes from any agent's output, and some lexers take
// quadratic time or more: 8,000 empty lines of Java take 25 s.
const (
	MaxBytes = 256 << 10 // length of the start of a text that is split into tokens
	maxLines = 20_000    // of it
	maxLine  = 8 << 10   // bytes of a line; the text is plain from the first longer one
)

var (
	textTime    = 500 * time.Millisecond
	requestTime = 2 * time.Second
)

// Patient sets how long a text may take. Tests call it before they begin, so that
// they do not depend on the speed of the machine.
func Patient(limit time.Duration) { textTime, requestTime = limit, limit }

// Request returns the context for all texts of one request. It limits their total
// time.
func Request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTime)
}

// Text splits a text into tokens by the language of a file name, or by the name of a
// language. It returns nil if there is nothing to highlight. The concatenated values
// of the tokens are the text, with \n for \r\n.
//
// Text returns when ctx is done or after half a second, whatever the text. The part
// that the lexer did not reach by then, and the part beyond the limits, is in the
// last token, of type chroma.None.
func Text(ctx context.Context, name, text string) []chroma.Token {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	n := within(text)
	if n == 0 || ctx.Err() != nil {
		return nil
	}
	lexer := forName(name)
	if lexer == nil {
		return nil
	}
	tokens, reached := common.tokens(ctx, lexer, text[:n])
	if reached == 0 {
		return nil
	}
	if rest := text[reached:]; rest != "" {
		tokens = append(tokens, chroma.Token{Type: chroma.None, Value: rest})
	}
	return tokens
}

// within returns how much of a text, in whole lines, the limits allow.
func within(text string) int {
	n, lines := 0, 0
	for line := range strings.Lines(text[:min(len(text), MaxBytes+1)]) {
		if lines++; lines > maxLines || len(line) > maxLine || n+len(line) > MaxBytes {
			break
		}
		n += len(line)
	}
	return n
}

// workers run lexers. A lexer cannot be stopped during a match: its worker stays busy
// for that long, and the number of workers limits how many do.
type workers struct{ slots chan struct{} }

var common = newWorkers(max(1, runtime.GOMAXPROCS(0)/2))

func newWorkers(n int) *workers { return &workers{slots: make(chan struct{}, n)} }

// tokens returns the tokens that a lexer finds until ctx is done or its time is over,
// and how many bytes of the text they cover.
func (w *workers) tokens(ctx context.Context, lexer chroma.Lexer, text string) ([]chroma.Token, int) {
	ctx, cancel := context.WithTimeout(ctx, textTime)
	defer cancel()
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, 0
	}
	j := &job{text: text}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { <-w.slots }()
		j.run(ctx, lexer)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return j.take()
}

// job is a text that a worker splits. Its tokens can be taken at any time.
type job struct {
	text string

	mu      sync.Mutex // guards the rest
	tokens  []chroma.Token
	reached int // bytes of the text that the tokens cover
	taken   bool
}

func (j *job) run(ctx context.Context, lexer chroma.Lexer) {
	defer func() { _ = recover() }() // chroma reports errors of an iterator by panics; the rest is plain
	if ctx.Err() != nil {
		return
	}
	next, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, j.text)
	if err != nil {
		return
	}
	for token := next(); token != chroma.EOF; token = next() {
		if ctx.Err() != nil || !j.add(token) {
			return
		}
	}
}

// add reports whether the lexer should go on. It stops after a token that does not
// match the text: a reader must see exactly the text.
func (j *job) add(token chroma.Token) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.taken || !strings.HasPrefix(j.text[j.reached:], token.Value) {
		return false
	}
	// The next value is cut from the text, so that tokens of one type can be joined
	// without copies.
	start := j.reached
	j.reached += len(token.Value)
	if last := len(j.tokens) - 1; last >= 0 && j.tokens[last].Type == token.Type {
		start -= len(j.tokens[last].Value)
		j.tokens = j.tokens[:last]
	}
	j.tokens = append(j.tokens, chroma.Token{Type: token.Type, Value: j.text[start:j.reached]})
	return true
}

func (j *job) take() ([]chroma.Token, int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.taken = true
	return j.tokens, j.reached
}
