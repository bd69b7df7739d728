// Package overlap runs functions beside each other, for the suites that look for what
// goes wrong between two calls. It promises that each function has the others beside it
// for as long as it runs; which calls meet is left to the scheduler.
//
//	err := overlap.Run(10,
//		func(round int) error { return write(round) },
//		func(int) error { return read() })
package overlap

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Run calls each worker again and again, with the number of the round, until all of them
// have done the given number of rounds. So a worker that begins late still has the
// others beside it, and one that waits for a call of another does not wait in vain. The
// first error ends all; Run returns all errors.
func Run(rounds int, workers ...func(round int) error) error {
	errs := make([]error, len(workers))
	var behind atomic.Int64
	var failed atomic.Bool
	behind.Store(int64(len(workers)))
	var wg sync.WaitGroup
	for i, worker := range workers {
		wg.Go(func() {
			for round := 0; behind.Load() > 0 && !failed.Load(); round++ {
				if errs[i] = worker(round); errs[i] != nil {
					failed.Store(true)
					return
				}
				if round == rounds-1 {
					behind.Add(-1)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
