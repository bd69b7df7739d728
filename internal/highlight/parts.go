package highlight

import (
	"bufio"
	"mime"
	"net/textproto"
	"strings"

	"github.com/alecthomas/chroma/v2"
)

// A partsLexer is for texts of which a part is in another language.
type partsLexer struct {
	chroma.Lexer
	parts func(text string) []part // none: the whole text belongs to the lexer
}

type part struct {
	lexer chroma.Lexer // nil: the one that found the parts
	text  string
}

// Tokenise implements chroma.Lexer.
func (l *partsLexer) Tokenise(options *chroma.TokeniseOptions, text string) (chroma.Iterator, error) {
	parts := l.parts(text)
	if parts == nil {
		return l.Lexer.Tokenise(options, text)
	}
	iterators := make([]chroma.Iterator, len(parts))
	for i, p := range parts {
		if p.lexer == nil {
			p.lexer = l.Lexer
		}
		var err error
		if iterators[i], err = p.lexer.Tokenise(options, p.text); err != nil {
			return nil, err
		}
	}
	return chroma.Concaterator(iterators...), nil
}

// markdownParts finds the YAML between two lines of dashes at the start of a text.
func markdownParts(r *chroma.LexerRegistry, text string) []part {
	n := 0
	for line := range strings.Lines(text) {
		first, fence := n == 0, strings.TrimRight(line, "\r\n") == "---"
		if first && !fence {
			return nil
		}
		n += len(line)
		if !first && fence {
			return []part{{r.Get("YAML"), text[:n]}, {nil, text[n:]}}
		}
	}
	return nil
}

// httpParts finds the body of a request or response with a content type.
func httpParts(r *chroma.LexerRegistry, text string) []part {
	n := 0
	for line := range strings.Lines(text) {
		n += len(line)
		if strings.TrimRight(line, "\r\n") != "" {
			continue
		}
		if lexer := bodyLexer(r, text[:n]); lexer != nil {
			return []part{{nil, text[:n]}, {lexer, text[n:]}}
		}
		break
	}
	return nil
}

func bodyLexer(r *chroma.LexerRegistry, head string) chroma.Lexer {
	reader := textproto.NewReader(bufio.NewReader(strings.NewReader(head)))
	if _, err := reader.ReadLine(); err != nil {
		return nil
	}
	header, err := reader.ReadMIMEHeader()
	if err != nil {
		return nil
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return nil
	}
	if lexer := r.MatchMimeType(media); lexer != nil {
		return lexer
	}
	kind, _, _ := strings.Cut(media, "/")
	syntax := media[strings.LastIndexByte(media, '+')+1:] // application/problem+json is JSON, too
	return r.MatchMimeType(kind + "/" + syntax)
}
