package graph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/stet-dev/stet/blob"
)

// Sight is a reference that Look reached.
type Sight struct {
	// Ref is the blob and the field by which it was found.
	Ref
	// From is the blob that has the field; zero for the first one.
	From blob.ID
	// Depth is the number of references between the first blob and this one.
	Depth int
	// Again means that the blob was seen before as the same kind. Nothing below is set
	// then, and its references are not followed again.
	Again bool
	// Size is the size of the content, and Refs the number of references in it.
	Size, Refs int
	// Err wraps blob.ErrNotFound, blob.ErrCorrupt, blob.ErrTooLarge or ErrMalformed if
	// the content is missing, cannot be read completely, or was not read.
	Err error
}

// Problem says in a few words what Err means, or "".
func (s *Sight) Problem() string {
	switch {
	case s.Err == nil:
		return ""
	case errors.Is(s.Err, blob.ErrNotFound):
		return "missing"
	case errors.Is(s.Err, blob.ErrCorrupt):
		return "damaged"
	case errors.Is(s.Err, blob.ErrTooLarge):
		return "too large to show"
	}
	return "not a " + s.Kind.String()
}

// LookOptions configure Look; nil shows everything, depth first.
type LookOptions struct {
	// Nearest looks at the nearest blobs first. Otherwise the references of a blob come
	// right after it.
	Nearest bool
	// Depth is how many references in a row are followed; 0 means all.
	Depth int
	// MaxBlobs is how many blobs are looked at, and MaxRefs how many references of each
	// are followed; 0 means all.
	MaxBlobs, MaxRefs int
	// MaxBytes is the size of the largest blob that is read; 0 means any.
	MaxBytes int64
}

// Look follows references one at a time, in the order of the stored bytes, for display. A
// blob is shown at each reference to it and followed at the first. Look reports whether
// MaxBlobs or MaxRefs left something out. Walk is for programs, which need every blob
// once and no order.
//
// A missing, damaged, malformed or too large blob is shown with its error; other
// errors of the store, and errors of show, end the look.
func Look(ctx context.Context, blobs blob.Store, root Root, opts *LookOptions, show func(*Sight) error) (truncated bool, err error) {
	l := &look{blobs: blobs, seen: make(map[Root]bool)}
	if opts != nil {
		l.opts = *opts
	}
	l.todo = []Sight{{Ref: Ref{Kind: root.Kind, ID: root.ID}}}
	for len(l.todo) > 0 {
		at := l.next()
		key := Root{at.Kind, at.ID}
		if at.Kind.Leaf() { // which one makes no difference
			key.Kind = Bytes
		}
		at.Again = l.seen[key]
		if !at.Again && l.opts.MaxBlobs > 0 && len(l.seen) == l.opts.MaxBlobs {
			l.truncated = true
			continue
		}
		var refs []Ref
		if !at.Again {
			l.seen[key] = true
			if refs, err = l.read(ctx, &at); err != nil {
				return false, err
			}
		}
		if err := show(&at); err != nil {
			return false, err
		}
		l.follow(&at, refs)
	}
	return l.truncated, nil
}

type look struct {
	blobs     blob.Store
	opts      LookOptions
	seen      map[Root]bool
	todo      []Sight // a queue of what is nearest, or a stack
	truncated bool
}

func (l *look) next() (at Sight) {
	if l.opts.Nearest {
		at, l.todo = l.todo[0], l.todo[1:]
		return at
	}
	last := len(l.todo) - 1
	at, l.todo = l.todo[last], l.todo[:last]
	return at
}

// follow adds the references of a blob to those still to be shown.
func (l *look) follow(at *Sight, refs []Ref) {
	if l.opts.Depth > 0 && at.Depth >= l.opts.Depth {
		return
	}
	if most := l.opts.MaxRefs; most > 0 && len(refs) > most {
		refs, l.truncated = refs[:most], true
	}
	start := len(l.todo)
	for _, r := range refs {
		l.todo = append(l.todo, Sight{Ref: r, From: at.ID, Depth: at.Depth + 1})
	}
	if !l.opts.Nearest { // the first reference must be on top
		slices.Reverse(l.todo[start:])
	}
}

// read reads a blob and returns its references.
func (l *look) read(ctx context.Context, at *Sight) (refs []Ref, err error) {
	data, err := l.content(ctx, at.ID)
	if err == nil {
		at.Size = len(data)
		refs, err = Refs(at.Kind, data)
		at.Refs = len(refs)
	}
	for _, known := range []error{blob.ErrNotFound, blob.ErrCorrupt, blob.ErrTooLarge, ErrMalformed} {
		if errors.Is(err, known) {
			at.Err = err
			return refs, nil
		}
	}
	return refs, err
}

func (l *look) content(ctx context.Context, id blob.ID) (data []byte, err error) {
	most := l.opts.MaxBytes
	if most == 0 {
		return l.blobs.Get(ctx, id)
	}
	r, err := blob.Open(ctx, l.blobs, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err = io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", blob.ErrTooLarge, id, most)
	}
	return data, err
}
