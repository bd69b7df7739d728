package abreast_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stet-dev/stet/internal/abreast"
)

var errOdd = errors.New("odd")

func half(n int) (int, error) {
	if n%2 == 1 {
		return 0, errOdd
	}
	return n / 2, nil
}

func TestResultsAreInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 3, 100} {
		got, errs := abreast.Each([]int{4, 3, 8, 0, 5}, n, half)
		if !slices.Equal(got, []int{2, 0, 4, 0, 0}) || !slices.Equal(errs, []error{nil, errOdd, nil, nil, errOdd}) {
			t.Errorf("%d at a time: %v, %v", n, got, errs)
		}
	}
	if got, errs := abreast.Each(nil, 3, half); len(got) != 0 || len(errs) != 0 {
		t.Errorf("of nothing: %v, %v", got, errs)
	}
}

// Each call waits until as many are running as may.
func TestSeveralAtATime(t *testing.T) {
	const n = 4
	var mu sync.Mutex
	together, most, running := sync.NewCond(&mu), 0, 0
	_, err := abreast.All(make([]int, 3*n), n, func(int) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		running++
		most = max(most, running)
		together.Broadcast()
		for most < n {
			together.Wait()
		}
		running--
		return 0, nil
	})
	if err != nil || most != n {
		t.Errorf("%d at a time, %v, want %d", most, err, n)
	}
}

func TestAnErrorEndsAll(t *testing.T) {
	calls := 0
	_, err := abreast.All([]int{2, 4, 5, 6, 8}, 1, func(n int) (int, error) {
		calls++
		return half(n)
	})
	if !errors.Is(err, errOdd) || calls != 3 {
		t.Errorf("%v after %d calls, want the error after 3", err, calls)
	}
}
