// Package settings adds entries to the JSON settings of other programs and takes them
// out again. It promises that everything else in the file stays unchanged, byte for
// byte: order, comments, indentation, line ends; that adding twice changes nothing;
// that removing what was added restores the original file; and that a file that it
// cannot parse is rejected and never written.
//
// The edits are made in the text. The spaces around an entry show whether an empty
// list existed before or was made for the entry: a list that Add makes has them, and
// in an existing empty list the entry stands directly before the end.
package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stet-dev/stet/foreign"
)

// Add adds entries. An existing entry stays; one of an earlier release, which Ours
// identifies, is replaced. Entries of one list must differ in Ours.
func Add(src []byte, entries []foreign.HookEntry) ([]byte, error) {
	for _, e := range entries {
		var err error
		if src, err = add(src, e); err != nil {
			return nil, err
		}
	}
	return src, nil
}

// Has reports whether all entries exist.
func Has(src []byte, entries []foreign.HookEntry) bool {
	after, err := Add(src, entries)
	return err == nil && len(entries) > 0 && bytes.Equal(src, after)
}

// Remove removes entries, of any release, and the lists that were made for them.
func Remove(src []byte, entries []foreign.HookEntry) ([]byte, error) {
	for _, e := range slices.Backward(entries) {
		for {
			after, err := removeOne(src, e)
			if err != nil {
				return nil, err
			}
			if bytes.Equal(after, src) {
				break
			}
			src = after
		}
	}
	return src, nil
}

func add(src []byte, e foreign.HookEntry) ([]byte, error) {
	if !json.Valid([]byte(e.Value)) || e.Ours == "" || !hasOurs(e) || len(e.List) == 0 {
		return nil, fmt.Errorf("%w: the entry for %v is not complete", foreign.ErrSettings, e.List)
	}
	root, err := parse(src)
	if err != nil {
		return nil, err
	}
	st := styleOf(src, root)
	if root == nil {
		return st.file(src, e), nil
	}
	path, err := walk(root, e)
	if err != nil {
		return nil, err
	}
	last := path[len(path)-1]
	if missing := e.List[len(path)-1:]; len(missing) > 0 {
		return st.insert(src, last, func(indent string) string { return st.member(missing, e, indent) }), nil
	}
	ours := oursOf(src, last, e)
	switch {
	case len(ours) == 0 && e.Key != "" && slices.ContainsFunc(last.parts, func(p part) bool { return p.key == e.Key }):
		return src, nil // somebody else's
	case len(ours) == 0:
		return st.insert(src, last, func(indent string) string { return st.element(e, indent) }), nil
	case len(ours) == 1 && (e.Key != "" || !mixed(src, last.parts[ours[0]].value, e.Ours)):
		v := last.parts[ours[0]].value
		if same(src[v.start:v.end], e.Value) {
			return src, nil
		}
		return splice(src, v.start, v.end, st.value(e.Value, indentAt(src, v.start))), nil
	}
	for { // several, or among others': begin again
		after, err := takeOut(src, e)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(after, src) {
			return add(src, e)
		}
		src = after
	}
}

// walk returns the values on the way to the container of an entry, as far as they
// exist.
func walk(root *node, e foreign.HookEntry) ([]*node, error) {
	path, keys := []*node{root}, e.List
	for i, key := range keys {
		at := path[len(path)-1]
		if at.kind != '{' {
			return nil, fmt.Errorf("%w: %q is not an object", foreign.ErrSettings, keys[i-1])
		}
		var found *node
		for _, p := range at.parts {
			if p.key != key {
				continue
			}
			if found != nil {
				return nil, fmt.Errorf("%w: %q is there twice", foreign.ErrSettings, key)
			}
			found = p.value
		}
		if found == nil {
			return path, nil
		}
		path = append(path, found)
	}
	kind, what := byte('['), "a list"
	if e.Key != "" {
		kind, what = '{', "an object"
	}
	if path[len(path)-1].kind != kind {
		return nil, fmt.Errorf("%w: %q is not %s", foreign.ErrSettings, keys[len(keys)-1], what)
	}
	return path, nil
}

// oursOf returns the parts of the container of an entry that are ours.
func oursOf(src []byte, container *node, e foreign.HookEntry) []int {
	return slices.DeleteFunc(oursIn(src, container, e.Ours), func(i int) bool { return e.Key != "" && container.parts[i].key != e.Key })
}

// hasOurs reports whether the value of an entry has the text that identifies it.
func hasOurs(e foreign.HookEntry) bool {
	value, err := (&parser{src: []byte(e.Value)}).value()
	return err == nil && holds([]byte(e.Value), value, e.Ours)
}

// holds reports whether a text of a value contains ours. It compares what the texts mean:
// programs differ in which characters they write as escapes.
func holds(src []byte, n *node, ours string) bool {
	var text string
	if n.kind == 0 && json.Unmarshal(src[n.start:n.end], &text) == nil && strings.Contains(text, ours) {
		return true
	}
	return slices.ContainsFunc(n.parts, func(p part) bool { return holds(src, p.value, ours) })
}

// oursIn returns the elements of a list that hold a text.
func oursIn(src []byte, list *node, ours string) (out []int) {
	for i, p := range list.parts {
		if holds(src, p.value, ours) {
			out = append(out, i)
		}
	}
	return out
}

// mixed reports whether an element that holds ours also holds a list with others'.
func mixed(src []byte, n *node, ours string) bool { return inner(src, n, ours) != nil }

// inner returns the list inside a value that has ours beside others', or nil.
func inner(src []byte, n *node, ours string) *node {
	for _, p := range n.parts {
		if !holds(src, p.value, ours) {
			continue
		}
		if n.kind == '[' && len(oursIn(src, n, ours)) < len(n.parts) {
			return n
		}
		return inner(src, p.value, ours)
	}
	return nil
}

// Value returns the value of a key at the top of a file, as JSON, or nil if it has none.
func Value(src []byte, key string) ([]byte, error) {
	root, err := parse(src)
	if err != nil || root == nil {
		return nil, err
	}
	for _, p := range slices.Backward(root.parts) {
		if p.key == key {
			return src[p.value.start:p.value.end], nil
		}
	}
	return nil, nil
}

// same reports whether two JSON values mean the same.
func same(a []byte, b string) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// takeOut removes one element that is ours and leaves its list.
func takeOut(src []byte, e foreign.HookEntry) ([]byte, error) {
	root, err := parse(src)
	if err != nil || root == nil {
		return src, err
	}
	path, err := walk(root, e)
	if err != nil || len(path) <= len(e.List) {
		return src, err
	}
	list := path[len(path)-1]
	ours := oursOf(src, list, e)
	if len(ours) == 0 {
		return src, nil
	}
	if e.Key != "" {
		return cutPart(src, list, ours[0]), nil
	}
	if within := inner(src, list.parts[ours[0]].value, e.Ours); within != nil {
		return cutPart(src, within, oursIn(src, within, e.Ours)[0]), nil
	}
	return cutPart(src, list, ours[0]), nil
}

// removeOne removes one element that is ours, and what was made for it.
func removeOne(src []byte, e foreign.HookEntry) ([]byte, error) {
	root, err := parse(src)
	if err != nil || root == nil {
		return src, err
	}
	path, err := walk(root, e)
	if err != nil || len(path) <= len(e.List) {
		return src, err
	}
	list := path[len(path)-1]
	ours := oursOf(src, list, e)
	if len(ours) != 1 || len(list.parts) != 1 || e.Key == "" && mixed(src, list.parts[0].value, e.Ours) || !made(src, list) {
		return takeOut(src, e)
	}
	for i := len(path) - 2; ; i-- { // the list was made for the entry
		at := slices.IndexFunc(path[i].parts, func(p part) bool { return p.key == e.List[i] })
		if i == 0 && madeFile(src, root, at, e.Defaults) {
			return cutFile(src, root), nil
		}
		if i == 0 || len(path[i].parts) > 1 || !made(src, path[i]) {
			return cutPart(src, path[i], at), nil
		}
	}
}

// made reports whether a container with one part looks as Add makes it.
func made(src []byte, n *node) bool {
	return len(n.parts) == 1 && n.parts[0].comma < 0 && spaces(src[n.start+1:n.parts[0].start]) && spaces(src[n.parts[0].end():n.end-1])
}

func spaces(b []byte) bool { return len(b) > 0 && len(bytes.TrimSpace(b)) == 0 }

// madeFile reports whether the whole file was made for the entry.
func madeFile(src []byte, root *node, at int, defaults [][2]string) bool {
	last := root.parts[len(root.parts)-1]
	if at != 0 || len(root.parts) != 1+len(defaults) || last.comma >= 0 ||
		!spaces(src[root.start+1:root.parts[0].start]) || !spaces(src[last.end():root.end-1]) {
		return false
	}
	for i, d := range defaults {
		if p := root.parts[i+1]; p.key != d[0] || !same(src[p.value.start:p.value.end], d[1]) {
			return false
		}
	}
	return len(bytes.TrimSpace(src[root.end:])) == 0 && bytes.HasPrefix(bytes.TrimLeft(src[root.end:], "\r"), []byte("\n"))
}

// cutFile removes an object that Add made, with the line end behind it.
func cutFile(src []byte, root *node) []byte {
	rest := bytes.TrimPrefix(bytes.TrimPrefix(src[root.end:], []byte("\r")), []byte("\n"))
	return slices.Concat(src[:root.start], rest)
}
