package settings

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stet-dev/stet/foreign"
)

// style is how a file is written.
type style struct {
	nl, unit string
	pretty   bool // values take several lines
}

func styleOf(src []byte, root *node) style {
	st := style{nl: "\n", unit: "  ", pretty: true}
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		st.nl = "\r\n"
	}
	if root == nil || len(root.parts) == 0 {
		return st
	}
	st.pretty = bytes.IndexByte(src[root.start:root.end], '\n') >= 0
	if gap := string(src[root.start+1 : root.parts[0].start]); strings.Contains(gap, "\n") {
		if indent := indentAt(src, root.parts[0].start); indent != "" && len(indent) <= 8 {
			st.unit = indent
		}
	}
	return st
}

// indentAt returns the blanks at the beginning of the line of an offset.
func indentAt(src []byte, at int) string {
	start := bytes.LastIndexByte(src[:at], '\n') + 1
	end := start
	for end < at && (src[end] == ' ' || src[end] == '\t') {
		end++
	}
	return string(src[start:end])
}

// value writes a value whose first line stands behind an indent.
func (st style) value(value, indent string) string {
	var out bytes.Buffer
	var err error
	if st.pretty {
		err = json.Indent(&out, []byte(value), indent, st.unit)
	} else {
		err = json.Compact(&out, []byte(value))
	}
	if err != nil {
		return value // not reached: values are checked
	}
	return strings.ReplaceAll(out.String(), "\n", st.nl)
}

// element writes an entry as a part of its container.
func (st style) element(e foreign.HookEntry, indent string) string {
	if e.Key == "" {
		return st.value(e.Value, indent)
	}
	key, _ := json.Marshal(e.Key)
	return string(key) + ": " + st.value(e.Value, indent)
}

// member writes the first key, and inside it objects for the other keys and the container
// of an entry.
func (st style) member(keys []string, e foreign.HookEntry, indent string) string {
	key, _ := json.Marshal(keys[0])
	open, end := "{", "}"
	if len(keys) == 1 && e.Key == "" {
		open, end = "[", "]"
	}
	deeper := indent + st.unit
	inside := ""
	if len(keys) == 1 {
		inside = st.element(e, deeper)
	} else {
		inside = st.member(keys[1:], e, deeper)
	}
	if !st.pretty {
		return string(key) + ": " + open + " " + inside + " " + end
	}
	return string(key) + ": " + open + st.nl + deeper + inside + st.nl + indent + end
}

// file writes a whole file.
func (st style) file(src []byte, e foreign.HookEntry) []byte {
	var out bytes.Buffer
	out.Write(src)
	out.WriteString("{" + st.nl + st.unit + st.member(e.List, e, st.unit))
	for _, d := range e.Defaults {
		key, _ := json.Marshal(d[0])
		out.WriteString("," + st.nl + st.unit + string(key) + ": " + d[1])
	}
	out.WriteString(st.nl + "}" + st.nl)
	return out.Bytes()
}

// insert adds a part at the end of a container.
func (st style) insert(src []byte, n *node, text func(indent string) string) []byte {
	if len(n.parts) == 0 {
		return splice(src, n.end-1, n.end-1, text(indentAt(src, n.start)+st.unit))
	}
	last := n.parts[len(n.parts)-1]
	from := last.end()
	if last.comma >= 0 {
		from = last.comma + 1
	}
	at, line := afterComments(src, from, n.end-1)
	indent, sep := indentAt(src, n.parts[0].start), " "
	own := strings.Contains(string(src[n.start+1:n.parts[0].start]), "\n")
	if own || line {
		sep = st.nl + indent
	}
	if last.comma >= 0 {
		return splice(src, at, at, sep+text(indent)+",")
	}
	src = splice(src, at, at, sep+text(indent))
	return splice(src, last.end(), last.end(), ",")
}

// afterComments returns the end of the last comment before an offset, or from, and
// whether that comment takes the rest of its line.
func afterComments(src []byte, from, to int) (at int, line bool) {
	at = from
	for i := from; i < to; {
		if end, ok := comment(src, i); ok && end > 0 && end <= to {
			at, line, i = end, src[i+1] == '/', end
			continue
		}
		i++
	}
	return at, line
}

// cutPart removes a part of a container with its comma.
func cutPart(src []byte, n *node, i int) []byte {
	p := n.parts[i]
	switch {
	case p.comma >= 0 && i == 0 && len(n.parts) > 1:
		next := n.parts[1].start
		if len(bytes.TrimSpace(src[p.comma+1:next])) > 0 {
			next = p.comma + 1
		}
		return splice(src, p.start, next, "")
	case p.comma >= 0 && i == 0:
		return splice(src, p.start, p.comma+1, "")
	case p.comma >= 0:
		at, _ := afterComments(src, n.parts[i-1].comma+1, p.start)
		return splice(src, at, p.comma+1, "")
	case i == 0:
		return splice(src, p.start, p.end(), "")
	}
	comma := n.parts[i-1].comma
	at, _ := afterComments(src, comma+1, p.start)
	return splice(splice(src, at, p.end(), ""), comma, comma+1, "")
}

// splice returns a copy in which a part is replaced.
func splice(src []byte, from, to int, text string) []byte {
	return slices.Concat(src[:from], []byte(text), src[to:])
}
