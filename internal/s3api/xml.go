package s3api

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// element is a part of an XML document. A nil element is an absent one.
type element struct {
	name, text string
	inner      []*element
}

// parseXML reads a document. It does not use the decoder's reflection, which also takes
// documents of other kinds for what it looks for.
func parseXML(text []byte) (*element, error) {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	var open []*element
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it has no XML document")
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local}
			if len(open) > 0 {
				last := open[len(open)-1]
				last.inner = append(last.inner, e)
			}
			open = append(open, e)
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(t)
			}
		case xml.EndElement:
			if len(open) == 1 {
				return open[0], nil
			}
			open = open[:len(open)-1]
		}
	}
}

// child returns the first inner element of a name.
func (e *element) child(name string) *element {
	if e != nil {
		for _, inner := range e.inner {
			if inner.name == name {
				return inner
			}
		}
	}
	return nil
}

// find returns the text of an inner element, or nothing if there is none.
func (e *element) find(path ...string) string {
	for _, name := range path {
		e = e.child(name)
	}
	if e == nil {
		return ""
	}
	return e.text
}

// is reports whether the element is there and has a name.
func (e *element) is(name string) bool { return e != nil && e.name == name }

// xmlWriter writes documents for requests.
type xmlWriter struct{ strings.Builder }

func (w *xmlWriter) field(name, text string) {
	w.WriteString("<" + name + ">")
	_ = xml.EscapeText(w, []byte(text)) // a builder does not fail
	w.WriteString("</" + name + ">")
}
