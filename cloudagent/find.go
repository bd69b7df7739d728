package cloudagent

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/internal/lookup"
)

// AmbiguousError says that several agents match a name, and lists the first few.
type AmbiguousError = lookup.AmbiguousError

// Find returns the agent that a text stands for: its id, a unique prefix of its id,
// or a unique name. The error wraps ErrNotFound, or is an *AmbiguousError.
func (s *Store) Find(ctx context.Context, text string) (Agent, error) {
	agent, err := s.Get(ctx, text) // also one that was imported and has no record yet
	if err == nil || !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrInvalid) {
		return agent, err
	}
	id, err := lookup.Find(ctx, s.rows, keyspace.Agent, text)
	if err == nil {
		return s.Get(ctx, id)
	}
	if !errors.Is(err, lookup.ErrNone) {
		return Agent{}, fmt.Errorf("find agent: %w", err)
	}
	return s.named(ctx, text)
}

// named finds an agent by its name.
func (s *Store) named(ctx context.Context, name string) (found Agent, err error) {
	var fits []string
	page := Page{Limit: 1000}
	for name != "" {
		list, err := s.List(ctx, page)
		if err != nil {
			return Agent{}, err
		}
		for _, a := range list.Agents {
			if a.Name == name {
				found, fits = a, append(fits, a.ID)
			}
		}
		if page.After = list.Next; page.After == "" {
			break
		}
	}
	switch len(fits) {
	case 0:
		return Agent{}, fmt.Errorf("agent %q: %w", name, ErrNotFound)
	case 1:
		return found, nil
	}
	return Agent{}, fmt.Errorf("find agent: %w", &AmbiguousError{Name: name, Candidates: fits[:min(len(fits), 5)], More: len(fits) > 5})
}
