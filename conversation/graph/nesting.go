package graph

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
)

// ErrTooDeep says that more than MaxNested subagents lie inside each other,
// whether a state holds the next one or names it.
var ErrTooDeep = wirelimit.ErrTooDeep

func tooDeep() error { return fmt.Errorf("%w: more than %d subagents", ErrTooDeep, MaxNested) }

// Nesting measures how deep subagents are nested. States that name others by id
// cannot form a cycle, but a chain of any length, and a few states that name the next
// one twice have exponentially many paths. It therefore remembers its results, which
// stay valid forever because contents never change. It is safe for concurrent use,
// and the zero value is ready.
type Nesting struct {
	mu      sync.Mutex
	heights map[blob.ID]int // nesting depth below a state
}

// Getter reads a blob, like the method of a blob.Store.
type Getter func(ctx context.Context, id blob.ID) ([]byte, error)

// Check returns ErrTooDeep if a blob leads to more than MaxNested nested subagents.
// Missing or damaged states end a chain; other errors of get are returned.
func (n *Nesting) Check(ctx context.Context, get Getter, kind Kind, data []byte) error {
	_, err := n.below(ctx, get, kind, data, MaxNested)
	return err
}

// refs checks references that were found by each.
func (n *Nesting) refs(ctx context.Context, get Getter, refs []Ref) error {
	_, err := n.highest(ctx, get, refs, MaxNested)
	return err
}

// below returns the nesting depth of subagents in a blob, or ErrTooDeep if it exceeds
// budget.
func (n *Nesting) below(ctx context.Context, get Getter, kind Kind, data []byte, budget int) (int, error) {
	s := scanner{total: len(data)}
	var refs []Ref
	s.fn = func(r Ref) {
		if r.Nested > 0 {
			refs = append(refs, r)
		}
	}
	if err := s.scan(kind, data); errors.Is(err, ErrTooDeep) {
		return 0, err
	}
	if s.nested > budget {
		return 0, tooDeep()
	}
	high, err := n.highest(ctx, get, refs, budget)
	return max(high, s.nested), err
}

func (n *Nesting) highest(ctx context.Context, get Getter, refs []Ref, budget int) (int, error) {
	highest := 0
	for _, r := range refs {
		h, err := n.height(ctx, get, r.ID, budget-r.Nested)
		if err != nil {
			return 0, err
		}
		highest = max(highest, r.Nested+h)
	}
	return highest, nil
}

// height measures a state. It goes down no further than budget.
func (n *Nesting) height(ctx context.Context, get Getter, id blob.ID, budget int) (int, error) {
	n.mu.Lock()
	h, known := n.heights[id]
	n.mu.Unlock()
	if budget < 0 || known && h > budget {
		return 0, tooDeep()
	}
	if known {
		return h, nil
	}
	data, err := get(ctx, id)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return 0, nil // do not remember: it may be stored later
	}
	if err != nil {
		return 0, err
	}
	if h, err = n.below(ctx, get, State, data, budget); err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.heights == nil {
		n.heights = make(map[blob.ID]int)
	}
	n.heights[id] = h
	return h, nil
}
