package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/stet-dev/stet/internal/keyspace"
	prefixes "github.com/stet-dev/stet/internal/lookup"
	"github.com/stet-dev/stet/kv"
)

// idLength is the number of characters of an id.
const idLength = 26

// isPrefix reports whether a text can be the beginning of an id, or all of it.
func isPrefix(text string) bool {
	return len(text) <= idLength && strings.Trim(strings.ToLower(text), "0123456789abcdefghjkmnpqrstvwxyz") == ""
}

// ValidID reports whether a text has the form of a whole id of a checkpoint, in any case.
func ValidID(text string) bool { return len(text) == idLength && isPrefix(text) }

// Find returns the checkpoint whose id begins with a prefix, in any workspace. The
// error wraps ErrNotFound, or is an *AmbiguousError.
func (s *Service) Find(ctx context.Context, prefix string) (*Record, error) {
	if prefix == "" || !isPrefix(prefix) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, prefix)
	}
	id, err := prefixes.Find(ctx, s.rows, keyspace.Checkpoint, strings.ToLower(prefix))
	var several *prefixes.AmbiguousError
	switch {
	case errors.Is(err, prefixes.ErrNone):
		return nil, fmt.Errorf("%w: %q", ErrNotFound, prefix)
	case errors.As(err, &several):
		return nil, &AmbiguousError{Ref: prefix, Candidates: several.Candidates}
	case err != nil:
		return nil, fmt.Errorf("find checkpoint %q: %w", prefix, err)
	}
	return s.Get(ctx, id)
}

// List yields the checkpoints of all workspaces, newest first. For one that cannot be
// read it yields an *UnreadableError and continues.
func (s *Service) List(ctx context.Context, opts *ListOptions) iter.Seq2[*Record, error] {
	var o ListOptions
	if opts != nil {
		o = *opts
	}
	r := keyspace.Checkpoints()
	if o.Before != "" {
		r.End = keyspace.Checkpoint(o.Before)
	}
	return o.selected(s.listed(ctx, r, true))
}

// Interrupted counts the workspaces whose last rewind was interrupted. The next call
// that opens such a workspace finishes or undoes it.
func (s *Service) Interrupted(ctx context.Context) (n int, err error) {
	for _, err := range s.rows.Scan(ctx, keyspace.Journals(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return 0, fmt.Errorf("count interrupted rewinds: %w", err)
		}
		n++
	}
	return n, nil
}
