package highlight

import (
	"archive/zip"
	_ "embed"
	"io/fs"
	"strings"

	"github.com/alecthomas/chroma/v2"
)

//go:embed lexers.zip
var archive string

// hosts maps languages to those they are embedded in.
var hosts = map[string]string{
	"ERB":              "HTML",
	"Go HTML Template": "HTML",
	"PHTML":            "HTML",
	"Svelte":           "HTML",
	"YAML+Jinja":       "YAML",
}

// load registers the lexers of the archive in its order, which is chroma's. The
// archive is part of the program, so an error in it is a bug.
func load() *chroma.LexerRegistry {
	files, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		panic(err)
	}
	r := chroma.NewLexerRegistry()
	for _, f := range files.File {
		if strings.HasSuffix(f.Name, ".xml") {
			r.Register(newLexer(files, f.Name))
		}
	}
	compose(r, files)
	return r
}

// compose replaces lexers that cover only a part of their language.
func compose(r *chroma.LexerRegistry, files fs.FS) {
	for name, host := range hosts {
		r.Register(chroma.DelegatingLexer(r.Get(host), r.Get(name)))
	}
	words, err := fs.Glob(files, "words/*")
	if err != nil {
		panic(err)
	}
	for _, file := range words {
		r.Register(withWords(r.Get(strings.TrimPrefix(file, "words/")), files, file))
	}
	r.Register(chroma.TypeRemappingLexer(
		newLexer(files, "coded/go_text_template.xml").SetConfig(&chroma.Config{Name: "Go raw string"}),
		chroma.TypeMapping{{From: chroma.Other, To: chroma.LiteralString}},
	))
	r.Register(&partsLexer{r.Get("markdown"), func(text string) []part { return markdownParts(r, text) }})
	r.Register(&partsLexer{r.Get("HTTP"), func(text string) []part { return httpParts(r, text) }})
}

// withWords distinguishes names with a special meaning from others.
func withWords(lexer chroma.Lexer, files fs.FS, file string) chroma.Lexer {
	data, err := fs.ReadFile(files, file)
	if err != nil {
		panic(err)
	}
	types := make(map[string]chroma.TokenType)
	for line := range strings.Lines(string(data)) {
		name, word, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if types[word], err = chroma.TokenTypeString(name); err != nil {
			panic(err)
		}
	}
	return chroma.RemappingLexer(lexer, func(t chroma.Token) []chroma.Token {
		if renamed, ok := types[t.Value]; ok && t.Type == chroma.NameVariable {
			t.Type = renamed
		}
		return []chroma.Token{t}
	})
}
