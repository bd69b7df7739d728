package attempt_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/internal/attempt"
)

func TestBest(t *testing.T) {
	score := func(n float64) *float64 { return &n }
	for name, c := range map[string]struct {
		all  []attempt.Attempt
		want int
	}{
		"nothing":               {nil, -1},
		"only one succeeded":    {[]attempt.Attempt{{Ended: true, Exit: 1}, {Ended: true}}, 1},
		"two without scores":    {[]attempt.Attempt{{Ended: true}, {Ended: true}}, -1},
		"the highest":           {[]attempt.Attempt{{Ended: true, Score: score(1)}, {Ended: true, Score: score(3)}, {Ended: true, Score: score(2)}}, 1},
		"two highest":           {[]attempt.Attempt{{Ended: true, Score: score(3)}, {Ended: true, Score: score(3)}, {Ended: true, Score: score(2)}}, -1},
		"more than two equals":  {[]attempt.Attempt{{Ended: true, Score: score(1)}, {Ended: true, Score: score(1)}, {Ended: true, Score: score(2)}}, 2},
		"one that still runs":   {[]attempt.Attempt{{Score: score(9)}, {Ended: true, Score: score(2)}}, 1},
		"a failed one is worse": {[]attempt.Attempt{{Ended: true, Exit: 2, Score: score(9)}, {Ended: true, Score: score(2)}}, 1},
	} {
		if got := attempt.Best(c.all); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestOfTry(t *testing.T) {
	h := newHouse(t)
	h.check(os.WriteFile(filepath.Join(h.space.Path(), "a"), []byte("1\n"), 0o600))
	base := h.checkpoint()
	for n := 1; n <= 3; n++ {
		h.branch(base, "one", n, func(string) {})
	}
	h.branch(base, "two", 1, func(string) {})
	h.check(h.keep.Conversations.Delete(t.Context(), "try-one-2", nil))
	all, err := attempt.OfTry(t.Context(), h.keep.Conversations, "one")
	h.check(err)
	if len(all) != 2 || all[0].Number != 1 || all[1].Number != 3 {
		t.Errorf("got %+v", all)
	}
	if _, err := attempt.OfTry(t.Context(), h.keep.Conversations, "none"); !errors.Is(err, attempt.ErrNoTry) {
		t.Errorf("a try that never was: %v", err)
	}
}
