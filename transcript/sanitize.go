package transcript

import (
	"bytes"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// sanitizer is the second of two defences: what is rendered holds no HTML of the
// text's own to begin with. It writes the elements and attributes that it knows, and
// of everything else only what it says. None of the elements that it knows reads its
// content in another way than as text and elements, so that what is escaped here stays
// text wherever it is read again.
type sanitizer struct {
	// classes lets the short classes of highlighted code through.
	classes bool
}

// clean returns what is harmless of a piece of HTML, or nothing if it cannot be read.
func (s sanitizer) clean(source []byte) []byte {
	var (
		out    bytes.Buffer
		hidden string // the element whose content is being left out, if any
		depth  int    // how often it was begun
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
			if linked { // a link also ends where the next begins
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

// written returns a tag that begins an element. HTML has no elements that end in it:
// browsers take <p/> for <p>.
func written(tag html.Token) string {
	tag.Type = html.StartTagToken
	return tag.String()
}

// knows reports whether an element other than a link is written. It is a function
// because a map would be filled whenever a program starts.
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

// unseen reports whether an element's content is none that a reader would see.
func unseen(element string) bool {
	switch element {
	case "frameset", "iframe", "noembed", "noframes", "noscript", "object", "script", "style", "title":
		return true
	}
	return false
}

// attributes returns what an element keeps of its attributes, and what links get.
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

// webURL returns an absolute URL of the web or of a mail address, written in a way that
// is read the same by everyone.
func webURL(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, " \t\n") {
		return "", false // browsers leave it out, where url.Parse sees part of a path
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
