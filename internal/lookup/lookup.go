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
			return "", &AmbiguousError{Name: name, Candidates: found[:min(len(found), shown)], More: len(found) > shown}
		}
	}
	return "", ErrNone
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
	short := make(map[string]string, len(ids))
	if len(ids) < many {
		for _, id := range ids {
			near, err := neighbours(ctx, rows, key(id), all)
			if err != nil {
				return nil, err
			}
			short[id] = cut(id, length, near...)
		}
		return short, nil
	}
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id], short[id] = true, id
	}
	var before, at string // the last two ids of the scan
	note := func(after string) {
		if wanted[at] {
			short[at] = cut(at, length, before, after)
		}
		before, at = at, after
	}
	for row, err := range rows.Scan(ctx, all, kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return nil, err
		}
		note(keyspace.Last(row.Key))
	}
	note("")
	return short, nil
}

// neighbours returns the ids before and after one, in the order of keys: no others
// have as much in common with it.
func neighbours(ctx context.Context, rows kv.Store, key string, all kv.Range) (near []string, err error) {
	for _, side := range []struct {
		in      kv.Range
		reverse bool
	}{{kv.Range{Start: all.Start, End: key}, true}, {kv.Range{Start: key + "\x00", End: all.End}, false}} {
		for row, err := range rows.Scan(ctx, side.in, kv.ScanOptions{KeysOnly: true, Limit: 1, Reverse: side.reverse}) {
			if err != nil {
				return nil, err
			}
			near = append(near, keyspace.Last(row.Key))
		}
	}
	return near, nil
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
