package checkpoint

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// nextID returns an id that is greater than last, even if the clock went back or
// stands still: checkpoints of a workspace are ordered by their ids, and clocks do
// not guarantee order.
func nextID(now time.Time, last string) (string, error) {
	ms := ulid.Timestamp(now)
	var id ulid.ULID
	if last != "" {
		prev, err := ulid.ParseStrict(strings.ToUpper(last))
		if err != nil {
			return "", fmt.Errorf("%w: last id %q: %v", ErrBadRecord, last, err)
		}
		if prev.Time() >= ms {
			id = prev
			if !increment(&id) {
				return "", fmt.Errorf("%w: no id after %q", ErrBadRecord, last)
			}
			return strings.ToLower(id.String()), nil
		}
	}
	if err := id.SetTime(ms); err != nil {
		return "", fmt.Errorf("make checkpoint id: %w", err)
	}
	if _, err := rand.Read(id[6:]); err != nil {
		return "", fmt.Errorf("make checkpoint id: %w", err)
	}
	return strings.ToLower(id.String()), nil
}

// increment adds one to the id as a number.
func increment(id *ulid.ULID) bool {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]++
		if id[i] != 0 {
			return true
		}
	}
	return false
}
