package attempt

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/conversation"
)

// OfTry returns the attempts of a try that are kept, in the order of their numbers. It fails
// with ErrNoTry if there is none.
func OfTry(ctx context.Context, conversations *conversation.Store, try string) ([]Attempt, error) {
	var all []Attempt
	for number := 1; number <= Max; number++ {
		one, err := Get(ctx, conversations, branchID(try, number))
		switch {
		case errors.Is(err, conversation.ErrNotFound), errors.Is(err, ErrNotOne):
			continue // others may come after one that was removed
		case err != nil:
			return nil, fmt.Errorf("attempts of %s: %w", try, err)
		}
		if one.Try == try {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: %q", ErrNoTry, try)
	}
	return all, nil
}

// Page returns the path of the page that shows a try.
func Page(try string) string { return "/try/" + try }

// Best returns the index of the attempt with the highest score among those that succeeded, or
// of the only one that did; -1 if that says nothing.
func Best(all []Attempt) int {
	best, tied := -1, false
	for i, a := range all {
		switch {
		case !a.Ended || a.Exit != 0:
		case best < 0:
			best = i
		case a.Score == nil || all[best].Score == nil:
			return -1
		case *a.Score == *all[best].Score:
			tied = true
		case *a.Score > *all[best].Score:
			best, tied = i, false
		}
	}
	if tied {
		return -1
	}
	return best
}
