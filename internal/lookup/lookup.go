// Package lookup finds rows by the beginning of an id, and shortens ids to what finds
// them again. Services offer it under their own names, so that the same text means the
// same thing everywhere:
//
//	id, err := lookup.Find(ctx, rows, keyspace.Conversation, "01JCX4")
//
// It knows neither what a row means nor which ids are valid.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

var (
	// ErrNone says that no id begins so.
	ErrNone = fault.New(fault.NotFound, "no id begins so")
	// ErrAmbiguous says that several ids begin so. The error is an *AmbiguousError.
	ErrAmbiguous = fault.New(fault.Invalid, "ambiguous")
)

// AmbiguousError lists ids that begin with a name. It wraps ErrAmbiguous.
type AmbiguousError struct {
	Name string
	// Candidates are the first few of them.
	Candidates []string
	// More says that there are others.
	More bool
}

func (e *AmbiguousError) Error() string {
	list := strings.Join(e.Candidates, ", ")
	if e.More {
		list += ", …"
	}
	return fmt.Sprintf("%q is ambiguous: it matches %s", e.Name, list)
}

// Unwrap returns ErrAmbiguous.
func (e *AmbiguousError) Unwrap() error { return ErrAmbiguous }

// shown is how many candidates an error names.
const shown = 5

// Key spells the key of a row from its id.
type Key func(id string) string

// Find returns the id that a name stands for: the id itself, or the only one that
// begins with the name as it is or, if none does, with the name in upper or in lower
// case. A row that cannot be read is found.
//
// An id may be below another one: "a/b" is below "a". A name that an id and only ids below
// it begin with stands for that id, and both parts of a name "a/b" may be shortened.
func Find(ctx context.Context, rows kv.Store, key Key, name string) (string, error) {
	if name == "" {
		return "", ErrNone
	}
	if ok, err := Exists(ctx, rows, key(name)); err != nil || ok {
		return name, err
	}
	for _, prefix := range slices.Compact([]string{name, strings.ToUpper(name), strings.ToLower(name)}) {
		found, err := Begin(ctx, rows, key, prefix, shown+1)
		switch {
		case err != nil:
			return "", err
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			if alone, err := onlyBelow(ctx, rows, key, prefix, found); err != nil || alone {
				return found[0], err
			}
			return "", &AmbiguousError{Name: name, Candidates: found[:min(len(found), shown)], More: len(found) > shown}
		}
	}
	if parent, rest, ok := strings.Cut(name, "/"); ok && parent != "" {
		if id, err := Find(ctx, rows, key, parent); err == nil && id != parent {
			return Find(ctx, rows, key, id+"/"+rest)
		}
	}
	return "", ErrNone
}

// onlyBelow reports whether all ids that begin with a prefix are the first one and those
// below it. Those below an id follow each other, so that the last one tells.
func onlyBelow(ctx context.Context, rows kv.Store, key Key, prefix string, found []string) (bool, error) {
	for _, id := range found[1:] {
		if !strings.HasPrefix(id, found[0]+"/") {
			return false, nil
		}
	}
	for row, err := range rows.Scan(ctx, keyspace.Prefix(key(prefix)), kv.ScanOptions{KeysOnly: true, Limit: 1, Reverse: true}) {
		return err == nil && strings.HasPrefix(keyspace.Last(row.Key), found[0]+"/"), err
	}
	return false, nil
}

// Begin returns ids that begin with a prefix, in the order of keys, at most limit.
func Begin(ctx context.Context, rows kv.Store, key Key, prefix string, limit int) (found []string, err error) {
	for row, err := range rows.Scan(ctx, keyspace.Prefix(key(prefix)), kv.ScanOptions{KeysOnly: true, Limit: limit}) {
		if err != nil {
			return nil, err
		}
		found = append(found, keyspace.Last(row.Key))
	}
	return found, nil
}

// Exists reports whether there is a row, also if it cannot be read.
func Exists(ctx context.Context, rows kv.Store, key string) (bool, error) {
	_, err := rows.Get(ctx, key)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return false, nil
	case err == nil || kv.Damaged(err):
		return true, nil
	}
	return false, err
}

// many is from how many ids on one scan of all rows is cheaper than two for each.
const many = 200

// Short returns for each id the shortest beginning, of at least length bytes, that
// Find takes for it. all is the range of the rows.
func Short(ctx context.Context, rows kv.Store, key Key, all kv.Range, ids []string, length int) (map[string]string, error) {
	near := func(id string) (bool, []string, error) { return neighbours(ctx, rows, key, id, all) }
	if len(ids) >= many {
		list, err := list(ctx, rows, all)
		if err != nil {
			return nil, err
		}
		near = list.neighbours
	}
	short := make(map[string]string, len(ids))
	for _, id := range ids {
		text, err := shorten(id, length, near)
		if err != nil {
			return nil, err
		}
		short[id] = text
	}
	return short, nil
}

// shorten returns what Find takes for an id. near returns whether there is such an id, and
// the ones beside it that are not below it: no others have as much in common with it.
func shorten(id string, length int, near func(id string) (bool, []string, error)) (string, error) {
	_, others, err := near(id)
	if err != nil {
		return "", err
	}
	parent, _, below := strings.Cut(id, "/")
	if !below {
		return cut(id, length, others...), nil
	}
	there, _, err := near(parent)
	if err != nil || !there {
		return cut(id, length, others...), err
	}
	above, err := shorten(parent, length, near)
	return above + cut(id, len(parent)+1+length, others...)[len(parent):], err
}

// listed are all ids in the order of keys, and the place of each.
type listed struct {
	ids    []string
	places map[string]int
}

func list(ctx context.Context, rows kv.Store, all kv.Range) (*listed, error) {
	l := &listed{places: make(map[string]int)}
	for row, err := range rows.Scan(ctx, all, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, err
		}
		id := keyspace.Last(row.Key)
		l.places[id] = len(l.ids)
		l.ids = append(l.ids, id)
	}
	return l, nil
}

func (l *listed) neighbours(id string) (there bool, near []string, err error) {
	at, ok := l.places[id]
	if !ok {
		return false, nil, nil
	}
	if at > 0 {
		near = append(near, l.ids[at-1])
	}
	for at++; at < len(l.ids) && strings.HasPrefix(l.ids[at], id+"/"); at++ {
	}
	if at < len(l.ids) {
		near = append(near, l.ids[at])
	}
	return true, near, nil
}

// neighbours returns whether there is an id, and the ids before and after it in the order
// of keys, without those below it.
func neighbours(ctx context.Context, rows kv.Store, key Key, id string, all kv.Range) (there bool, near []string, err error) {
	if there, err = Exists(ctx, rows, key(id)); err != nil || !there {
		return there, nil, err
	}
	next := func(in kv.Range, reverse bool) (string, error) {
		for row, err := range rows.Scan(ctx, in, kv.ScanOptions{KeysOnly: true, Limit: 1, Reverse: reverse}) {
			if err != nil {
				return "", err
			}
			return keyspace.Last(row.Key), nil
		}
		return "", nil
	}
	before, err := next(kv.Range{Start: all.Start, End: key(id)}, true)
	if err != nil {
		return there, nil, err
	}
	after, err := next(kv.Range{Start: key(id) + "\x00", End: all.End}, false)
	if err == nil && strings.HasPrefix(after, id+"/") {
		after, err = next(kv.Range{Start: keyspace.Prefix(key(id + "/")).End, End: all.End}, false)
	}
	return there, []string{before, after}, err
}

// cut returns the beginning of an id that none of the others has.
func cut(id string, length int, others ...string) string {
	for _, other := range others {
		same := 0
		for same < min(len(id), len(other)) && id[same] == other[same] {
			same++
		}
		length = max(length, same+1)
	}
	for length < len(id) && !utf8.RuneStart(id[length]) {
		length++
	}
	return id[:min(length, len(id))]
}
