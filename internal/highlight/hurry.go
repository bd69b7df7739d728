package highlight

import (
	"encoding/xml"
	"io/fs"
	"time"

	"github.com/alecthomas/chroma/v2"

	"github.com/stet-dev/stet/fault"
)

// newLexer reads a lexer of the archive and adds a time limit to its rules. A lexer
// that runs inside another, or that finds no token, cannot be observed from outside
// before it has ended.
func newLexer(files fs.FS, path string) *chroma.RegexLexer {
	head := chroma.MustNewXMLLexer(files, path) // reads the head only
	return chroma.MustNewLexer(head.Config(), func() chroma.Rules {
		data, err := fs.ReadFile(files, path)
		if err != nil {
			panic(err)
		}
		var lexer struct {
			Rules chroma.Rules `xml:"rules"`
		}
		if err := xml.Unmarshal(data, &lexer); err != nil {
			panic(err)
		}
		for _, rules := range lexer.Rules {
			for i := range rules {
				rules[i].Mutator = hurried(rules[i].Mutator)
			}
		}
		return lexer.Rules
	})
}

// hurried adds hurry to the action of a rule. Mutators of the lexer itself, such as
// include, are not rules of a text.
func hurried(mutator chroma.Mutator) chroma.Mutator {
	if mutator == nil {
		return hurry{}
	}
	if _, ok := mutator.(chroma.LexerMutator); ok {
		return mutator
	}
	return chroma.Mutators(hurry{}, mutator)
}

// hurry ends a lexer that takes too long.
type hurry struct{}

type begunKey struct{}

var errSlow = fault.New(fault.Exhausted, "lexing takes too long")

// Mutate implements chroma.Mutator.
func (hurry) Mutate(state *chroma.LexerState) error {
	begun, ok := state.Get(begunKey{}).(time.Time)
	if !ok {
		state.Set(begunKey{}, time.Now())
		return nil
	}
	if time.Since(begun) > textTime {
		return errSlow
	}
	return nil
}
