package highlight

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/chroma/v2"
)

func init() { Patient(time.Hour) }

// scripted is a lexer that does what a test says.
type scripted struct {
	chroma.Lexer
	next chroma.Iterator
}

func (s scripted) Tokenise(*chroma.TokeniseOptions, string) (chroma.Iterator, error) {
	return s.next, nil
}

func word(value string) chroma.Token { return chroma.Token{Type: chroma.Keyword, Value: value} }

func values(tokens []chroma.Token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(t.Value)
	}
	return b.String()
}

// What comes out is the text, whatever its size and its language.
func TestTextStaysWhatItIs(t *testing.T) {
	line := "// " + strings.Repeat("c", 1000) + "\n"
	for name, c := range map[string]struct {
		file, text string
		coloured   int // bytes at the beginning; -1: no tokens at all
	}{
		"short":              {"a.go", "func f() {}", 11},
		"windows":            {"a.md", "# T\r\n```go\r\nvar a\r\n```\r\n", 20},
		"many bytes":         {"a.go", strings.Repeat(line, MaxBytes/len(line)+9), MaxBytes / len(line) * len(line)},
		"many lines":         {"a.go", strings.Repeat("//\n", maxLines+9), 3 * maxLines},
		"a long line":        {"a.go", line + "//" + strings.Repeat("x", maxLine) + "\n" + line, len(line)},
		"nothing but a line": {"a.go", strings.Repeat("a", maxLine+1), -1},
		"a bare return":      {"a.go", "var a\rvar b\n", 12},
		"no language":        {"a.unheard-of", line, -1},
		"nothing":            {"a.go", "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			got := Text(t.Context(), c.file, c.text)
			if c.coloured < 0 {
				if got != nil {
					t.Fatalf("%d tokens, want none", len(got))
				}
				return
			}
			want := strings.ReplaceAll(c.text, "\r\n", "\n")
			if values(got) != want {
				t.Fatalf("tokens hold %d bytes, want the %d of the text", len(values(got)), len(want))
			}
			coloured := got
			if last := got[len(got)-1]; last.Type == chroma.None {
				coloured = got[:len(got)-1]
			}
			if n := len(values(coloured)); n != c.coloured {
				t.Errorf("%d bytes have colours, want %d", n, c.coloured)
			}
		})
	}
}

// A lexer is asked for no more when the one who wanted the tokens has gone, and what
// it did not reach is missing.
func TestLexerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int32
	lexer := scripted{next: func() chroma.Token {
		if asked.Add(1) == 3 {
			cancel()
		}
		return word("a")
	}}
	w := newWorkers(1)
	tokens, reached := w.tokens(ctx, lexer, strings.Repeat("a", 100))
	w.slots <- struct{}{} // the worker has ended
	if asked.Load() != 3 || reached > 3 || len(values(tokens)) != reached {
		t.Errorf("asked for %d tokens, got %q, %d bytes, want at most 3", asked.Load(), values(tokens), reached)
	}
	if got, _ := w.tokens(ctx, lexer, "a"); got != nil || asked.Load() != 3 {
		t.Errorf("got %v, asked %d times after the end", got, asked.Load())
	}
}

// A lexer that does not come back keeps its worker and nobody else: a caller gets
// what there is when its time is over, and there are never more lexers than workers.
func TestStuckLexers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		release := make(chan struct{})
		lexer := func() chroma.Lexer {
			first := true
			return scripted{next: func() chroma.Token {
				if first {
					first = false
					return word("a")
				}
				running.Add(1)
				<-release
				return chroma.EOF
			}}
		}
		w := newWorkers(2)
		begun := time.Now()
		for i := range 5 {
			tokens, reached := w.tokens(t.Context(), lexer(), "ab")
			if want := min(1, max(0, 2-i)); reached != want || len(values(tokens)) != want {
				t.Errorf("text %d: %q, want %d bytes", i, values(tokens), want)
			}
		}
		if got := time.Since(begun); got != 5*textTime {
			t.Errorf("it took %v, want %v", got, 5*textTime)
		}
		if got := running.Load(); got != 2 {
			t.Errorf("%d lexers run, want 2", got)
		}
		close(release)
		synctest.Wait()
		if _, reached := w.tokens(t.Context(), scripted{next: once("ab")}, "ab"); reached != 2 {
			t.Errorf("%d bytes after the stuck lexers have ended, want 2", reached)
		}
	})
}

// once returns an iterator over one word.
func once(text string) chroma.Iterator { return chroma.Literator(word(text)) }

func TestLexersThatFail(t *testing.T) {
	for name, next := range map[string]chroma.Iterator{
		"a panic":        func() chroma.Token { panic("no such lexer") },
		"another text":   once("other"),
		"more than all":  once("text that is longer"),
		"less than half": once("te"),
	} {
		if tokens, reached := newWorkers(1).tokens(t.Context(), scripted{next: next}, "text"); reached != len(values(tokens)) || !strings.HasPrefix("te", values(tokens)) {
			t.Errorf("%s: %q, %d bytes", name, values(tokens), reached)
		}
	}
}

// Rules give up after a while, each run of a lexer for itself: what runs inside
// another lexer is not seen from outside.
func TestRulesGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := &chroma.LexerState{MutatorContext: map[any]any{}}
		pushed := false
		rule := hurried(chroma.MutatorFunc(func(*chroma.LexerState) error { pushed = true; return nil }))
		for range 2 {
			if err := rule.Mutate(state); err != nil || !pushed {
				t.Fatalf("a rule in time: %v, pushed %t", err, pushed)
			}
		}
		time.Sleep(textTime + 1)
		pushed = false
		if err := rule.Mutate(state); err != errSlow || pushed {
			t.Errorf("a rule that is late: %v, pushed %t", err, pushed)
		}
		if err := rule.Mutate(&chroma.LexerState{MutatorContext: map[any]any{}}); err != nil {
			t.Errorf("the next text: %v", err)
		}
	})
}

// Every rule of every lexer gives up, or brings rules that do.
func TestAllRulesGiveUp(t *testing.T) {
	for _, name := range []string{"Java", "Python", "Rust", "SAS"} {
		rules, err := forName(name).(*chroma.RegexLexer).Rules()
		if err != nil {
			t.Fatal(err)
		}
		for state, list := range rules {
			for i, rule := range list {
				if rule.Mutator == nil {
					t.Errorf("%s: rule %d of %s never gives up", name, i, state)
				}
			}
		}
	}
}
