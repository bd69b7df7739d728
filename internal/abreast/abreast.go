// Package abreast calls a function for many items, several at a time, for callers that
// wait for a database or a bucket. Results are in the order of the items, whichever call
// ended first.
//
//	infos, errs := abreast.Each(ids, 16, store.Info)
package abreast

import (
	"sync"
	"sync/atomic"
)

// Each calls fn for every item, at most n at a time (one, if n is less), and returns when
// all calls have.
func Each[T, R any](items []T, n int, fn func(T) (R, error)) ([]R, []error) {
	return run(items, n, fn, false)
}

// All is Each for callers that need every result: after an error it begins no more calls,
// and it returns the error of the first item that has one.
func All[T, R any](items []T, n int, fn func(T) (R, error)) ([]R, error) {
	results, errs := run(items, n, fn, true)
	for _, err := range errs {
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

func run[T, R any](items []T, n int, fn func(T) (R, error), stop bool) ([]R, []error) {
	results, errs := make([]R, len(items)), make([]error, len(items))
	var next atomic.Int64
	var failed atomic.Bool
	var work sync.WaitGroup
	for range min(max(n, 1), len(items)) {
		work.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(items)) && !(stop && failed.Load()); i = next.Add(1) - 1 {
				if results[i], errs[i] = fn(items[i]); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	work.Wait()
	return results, errs
}
