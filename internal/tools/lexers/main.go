// Command lexers writes the archive that internal/highlight embeds: the rules of
// chroma's lexers as data. Chroma's own package of lexers reads the headers of all of
// them at program start, even if it never shows code.
//
// Most lexers are XML files of the module and are copied. Lexers written in Go are
// serialised; of composite lexers only the part with the language is, and
// internal/highlight composes them again.
//
//	go run ./internal/tools/lexers internal/highlight
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

const source = "github.com/alecthomas/chroma/v2"

// left names lexers whose states are functions, which XML cannot hold.
var left = []string{"Haxe", "Raku"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: lexers DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(target string) error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", source).Output()
	if err != nil {
		return fmt.Errorf("find %s: %w", source, err)
	}
	dir := strings.TrimSpace(string(out))
	license, err := os.ReadFile(filepath.Join(dir, "COPYING"))
	if err != nil {
		return err
	}
	archive, err := pack(dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(target, "lexers.COPYING"), license, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(target, "lexers.zip"), archive, 0o644)
}

// pack makes an archive of the lexers in chroma's order: among equals, the order
// decides which one a file name gets.
func pack(dir string) ([]byte, error) {
	files, err := readFiles(filepath.Join(dir, "lexers"))
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	add := func(name string, data []byte) error {
		f, err := w.Create(name)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return err
	}
	for _, lexer := range lexers.GlobalLexerRegistry.Lexers {
		name := lexer.Config().Name
		if slices.Contains(left, name) {
			continue
		}
		language := languageOf(lexer)
		file, data, err := files.entry(language)
		if err != nil {
			return nil, fmt.Errorf("serialise %s: %w", name, err)
		}
		if err := add(file, data); err != nil {
			return nil, err
		}
		if words := files.renamed(lexer); words != nil {
			if err := add("words/"+name, words); err != nil {
				return nil, err
			}
		}
	}
	err = w.Close()
	return archive.Bytes(), err
}

// entry returns the archive entry of a lexer: the file of the module, if the lexer
// was made from one.
func (m *moduleFiles) entry(lexer *chroma.RegexLexer) (file string, data []byte, err error) {
	name := lexer.Config().Name
	data, err = marshal(lexer)
	if err != nil {
		return "", nil, err
	}
	if original, ok := m.byName[name]; ok {
		same, err := marshal(original.lexer)
		if err != nil {
			return "", nil, err
		}
		if bytes.Equal(data, same) {
			return "embedded/" + original.file, original.data, nil
		}
	}
	slug := strings.NewReplacer(" ", "_", "+", "_").Replace(strings.ToLower(name))
	return "coded/" + slug + ".xml", data, nil
}

// marshal is chroma.Marshal with states in a stable order, and with functions
// replaced by data.
func marshal(lexer *chroma.RegexLexer) ([]byte, error) {
	rules, err := lexer.Rules()
	if err != nil {
		return nil, err
	}
	plain, err := chroma.NewLexer(lexer.Config(), func() chroma.Rules {
		return withoutFunctions(lexer.Config().Name, rules)
	})
	if err != nil {
		return nil, err
	}
	data, err := chroma.Marshal(plain)
	if err != nil {
		return nil, err
	}
	open, end := []byte("\n    <state "), []byte("\n  </rules>")
	head, rest, ok := bytes.Cut(data, open)
	body, tail, closed := bytes.Cut(rest, end)
	if !ok || !closed {
		return nil, errors.New("no states")
	}
	states := bytes.Split(body, open)
	slices.SortFunc(states, bytes.Compare)
	return slices.Concat(head, open, bytes.Join(states, open), end, tail, []byte("\n")), nil
}
