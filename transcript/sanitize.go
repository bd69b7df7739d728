package transcript

import (
	"bytes"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// sanitizer is the second of two defences: the rendered HTML contains no HTML of the
// text itself. It keeps known elements and attributes, and only the text of
// everything else. All known elements contain plain text and elements only, so
// escaped text stays text when it is parsed again.
type sanitizer struct {
	// classes keeps the short classes of highlighted code.
	classes bool
}

// clean returns the harmless part of a piece of HTML, or nothing if it cannot be
// parsed.
func (s sanitizer) clean(source []byte) []byte {
	var (
		out    bytes.Buffer
		hidden string // the element whose content is being skipped, if any
		depth  int    // nesting depth of hidden
		linked bool   // a link is written and open
	)
	z := html.NewTokenizer(bytes.NewReader(source))
	for {
		if z.Next() == html.ErrorToken {
			if z.Err() != io.EOF {
				return nil
			}
			return out.Bytes()
		}
		token := z.Token()
		begins := token.Type == html.StartTagToken || token.Type == html.SelfClosingTagToken
		ends := token.Type == html.EndTagToken
		switch {
		case hidden != "":
			if begins && token.Data == hidden {
				depth++
			}
			if ends && token.Data == hidden {
				depth--
			}
			if depth == 0 {
				hidden = ""
			}
		case token.Type == html.TextToken:
			out.WriteString(token.String())
		case begins && unseen(token.Data):
			hidden, depth = token.Data, 1
		case token.Data == "a" && (begins || ends):
			if linked { // the next link also ends a link
				out.WriteString("</a>")
			}
			token.Attr = s.attributes(token.Data, token.Attr)
			if linked = begins && len(token.Attr) > 0; linked {
				out.WriteString(written(token))
			}
		case begins && s.knows(token.Data):
			token.Attr = s.attributes(token.Data, token.Attr)
			out.WriteString(written(token))
		case ends && s.knows(token.Data):
			out.WriteString(token.String())
		}
	}
}

// written returns the start tag of an element. HTML has no self-closing elements:
// browsers read <p/> as <p>.
func written(tag html.Token) string {
	tag.Type = html.StartTagToken
	return tag.String()
}

// knows reports whether an element other than a link is written. It is a function
// because a map would be filled at every program start.
func (s sanitizer) knows(element string) bool {
	switch element {
	case "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "em", "strong", "del",
		"code", "pre", "blockquote", "table", "thead", "tbody", "tr", "th", "td":
		return true
	case "span":
		return s.classes
	}
	return false
}

// unseen reports whether an element's content is invisible to readers.
func unseen(element string) bool {
	switch element {
	case "frameset", "iframe", "noembed", "noframes", "noscript", "object", "script", "style", "title":
		return true
	}
	return false
}

// attributes returns the kept attributes of an element, and the added ones of links.
func (s sanitizer) attributes(element string, given []html.Attribute) []html.Attribute {
	for _, a := range given {
		switch {
		case element == "a" && a.Key == "href":
			if href, ok := webURL(a.Val); ok {
				return []html.Attribute{{Key: "href", Val: href}, {Key: "rel", Val: "nofollow noreferrer"}}
			}
		case element == "ol" && a.Key == "start" && isNumber(a.Val),
			element == "span" && a.Key == "class" && isShortClass(a.Val):
			return []html.Attribute{{Key: a.Key, Val: a.Val}}
		}
	}
	return nil
}

// webURL returns an absolute URL of the web or of a mail address, in a form that all
// parsers read the same way.
func webURL(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, " \t\n") {
		return "", false // browsers drop it, but url.Parse reads it as part of a path
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", false
	}
	switch u.Scheme {
	case "http", "https", "mailto":
		return u.String(), true
	}
	return "", false
}

// isNumber reports whether s is a number of at most nine digits.
func isNumber(s string) bool {
	return 0 < len(s) && len(s) <= 9 && strings.Trim(s, "0123456789") == ""
}

// isShortClass reports whether s is a class of highlighted code: a letter and up to
// three letters and digits.
func isShortClass(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return 0 < len(s) && len(s) <= 4 && strings.IndexByte(letters, s[0]) >= 0 && strings.Trim(s, letters+"0123456789") == ""
}
