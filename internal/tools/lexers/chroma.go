package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/chroma/v2"
)

// moduleFiles is the content of chroma's directory of lexers.
type moduleFiles struct {
	byName   map[string]moduleFile // by the name of the lexer
	literals []string              // the strings of its Go files, each once
}

type moduleFile struct {
	file  string
	data  []byte
	lexer *chroma.RegexLexer
}

func readFiles(dir string) (*moduleFiles, error) {
	files := &moduleFiles{byName: make(map[string]moduleFile)}
	paths, err := filepath.Glob(filepath.Join(dir, "embedded", "*.xml"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file := filepath.Base(path)
		lexer, err := chroma.NewXMLLexer(os.DirFS(filepath.Dir(path)), file)
		if err != nil {
			return nil, err
		}
		files.byName[lexer.Config().Name] = moduleFile{file, data, lexer}
	}
	files.literals, err = literals(dir)
	return files, err
}

func literals(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var s scanner.Scanner
		s.Init(token.NewFileSet().AddFile(path, -1, len(data)), data, nil, 0)
		for _, kind, text := s.Scan(); kind != token.EOF; _, kind, text = s.Scan() {
			if word, err := strconv.Unquote(text); kind == token.STRING && err == nil {
				found[word] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// renamed lists the words to which a lexer gives another type than the rules of its
// language, as lines of a type and a word. Only a function of the lexer has them;
// candidates are all strings in chroma's sources.
func (m *moduleFiles) renamed(lexer chroma.Lexer) []byte {
	if kind(lexer) != "remappingLexer" {
		return nil
	}
	mapper := field[func(chroma.Token) []chroma.Token](lexer, "mapper")
	var lines strings.Builder
	for _, word := range m.literals {
		for _, t := range mapper(chroma.Token{Type: chroma.NameVariable, Value: word}) {
			if t.Type != chroma.NameVariable {
				fmt.Fprintf(&lines, "%s %s\n", t.Type, word)
			}
		}
	}
	return []byte(lines.String())
}

// languageOf returns the wrapped lexer that has the rules.
func languageOf(lexer chroma.Lexer) *chroma.RegexLexer {
	switch kind(lexer) {
	case "delegatingLexer": // a language inside of another
		return languageOf(field[chroma.Lexer](lexer, "language"))
	case "remappingLexer": // some words get another type
		return languageOf(field[chroma.Lexer](lexer, "lexer"))
	case "markdownLexer", "httpBodyContentTyper": // parts of the text have their own lexer
		return languageOf(field[chroma.Lexer](lexer, "Lexer"))
	}
	return lexer.(*chroma.RegexLexer)
}

func kind(lexer chroma.Lexer) string { return reflect.TypeOf(lexer).Elem().Name() }

// field reads an unexported field of chroma; it panics if the field does not exist.
func field[T any](of any, name string) T {
	return *(*T)(reflect.ValueOf(of).Elem().FieldByName(name).Addr().UnsafePointer())
}

// emitters replace functions, or nothing, by lexer and pattern.
var emitters = map[string]map[string]chroma.Emitter{
	"Caddyfile":            heredoc,
	"Caddyfile Directives": heredoc,
	"Go": {
		// Raw strings may be templates; internal/highlight has the lexer for them.
		"(`)([^`]*)(`)": chroma.ByGroups(chroma.LiteralString, chroma.Using("Go raw string"), chroma.LiteralString),
	},
	"HTTP": {
		`([^\s:]+)( *)(:)( *)([^\r\n]+)(\r?\n|\Z)`: chroma.ByGroups(chroma.Name, chroma.Text, chroma.Operator, chroma.Text, chroma.Literal, chroma.Text),
		`([\t ]+)([^\r\n]+)(\r?\n|\Z)`:             chroma.ByGroups(chroma.Text, chroma.Literal, chroma.Text),
		`.+`:                                       chroma.Generic,
	},
	"reStructuredText": {
		// As chroma has it where it does not know the language of the block.
		`^( *\.\.)(\s*)((?:source)?code(?:-block)?)(::)([ \t]*)([^\n]+)(\n[ \t]*\n)([ \t]+)(.*)(\n)((?:(?:\8.*|)\n)+)`: chroma.ByGroups(
			chroma.Punctuation, chroma.Text, chroma.OperatorWord, chroma.Punctuation, chroma.Text, chroma.Keyword, chroma.Text,
			chroma.String, chroma.String, chroma.String, chroma.String),
	},
}

// heredoc has a group inside of a group, whose text must not come twice.
var heredoc = map[string]chroma.Emitter{
	`(<<([a-zA-Z0-9_-]+))(\n(.*|\n)*)(\s*)(\2)`: chroma.ByGroups(
		chroma.StringHeredoc, chroma.Ignore, chroma.String, chroma.String, chroma.String, chroma.StringHeredoc),
}

func withoutFunctions(lexer string, rules chroma.Rules) chroma.Rules {
	rules = rules.Clone()
	for _, state := range rules {
		for i, rule := range state {
			if emitter, ok := emitters[lexer][rule.Pattern]; ok {
				state[i].Type = emitter
			}
		}
	}
	return rules
}
