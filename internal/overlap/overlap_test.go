package overlap_test

import (
	"errors"
	"testing"

	"github.com/stet-dev/stet/internal/overlap"
)

// TestNoWorkerIsLeftAlone has a worker that needs a call of the other for each of its
// own. The other goes on although it has done its rounds.
func TestNoWorkerIsLeftAlone(t *testing.T) {
	turns, waited := make(chan struct{}), 0
	done := make(chan struct{})
	err := overlap.Run(10,
		func(round int) error {
			for range 3 {
				<-turns
			}
			if waited++; waited == 10 {
				close(done)
			}
			return nil
		},
		func(int) error {
			select {
			case turns <- struct{}{}:
			case <-done:
			}
			return nil
		})
	if err != nil || waited < 10 {
		t.Errorf("got %v after %d rounds, want 10", err, waited)
	}
}

func TestAnErrorEndsAll(t *testing.T) {
	broken := errors.New("broken")
	var rounds []int
	err := overlap.Run(1000,
		func(round int) error {
			rounds = append(rounds, round)
			if round == 2 {
				return broken
			}
			return nil
		},
		func(int) error { return nil })
	if !errors.Is(err, broken) || len(rounds) != 3 {
		t.Errorf("got %v after rounds %v, want the error after three", err, rounds)
	}
}
