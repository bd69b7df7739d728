package upkeep

import (
	"sync"
	"sync/atomic"
)

// readsBeside is how many reads of a check or an archiving wait at the same time. A
// database answers those in one round trip.
const readsBeside = 64

// beside calls fn for every item, several at a time, and returns the results in the order
// of items, or the error of the first item that has one.
func beside[T, R any](items []T, workers int, fn func(T) (R, error)) ([]R, error) {
	results, errs := make([]R, len(items)), make([]error, len(items))
	var next atomic.Int64
	var failed atomic.Bool
	var work sync.WaitGroup
	for range min(workers, len(items)) {
		work.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(items)) && !failed.Load(); i = next.Add(1) - 1 {
				if results[i], errs[i] = fn(items[i]); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	work.Wait()
	for _, err := range errs {
		if err != nil {
			return results, err
		}
	}
	return results, nil
}
