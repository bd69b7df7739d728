package kv

import (
	"context"
	"sync"
)

// Beside names one row for each row of a range: the row with the last key from Prefix +
// rest + From up to, but excluding, Prefix + rest + To, where rest is the key of the row
// without its first Skip bytes. Those bytes are ASCII in every key of the range.
type Beside struct {
	Skip             int
	Prefix, From, To string
}

// Of returns the range whose last row Beside names for a key.
func (b Beside) Of(key string) Range {
	rest := key[min(b.Skip, len(key)):]
	return Range{Start: b.Prefix + rest + b.From, End: b.Prefix + rest + b.To}
}

// Found is a key of a range and the rows beside it.
type Found struct {
	Key string
	// Rows has one row for each requested Beside. A row that does not exist has no key.
	Rows []Row
	// Errs holds, for each of Rows, why it cannot be read (see Damaged), or nil.
	Errs []error
}

// EachBeside is ScanBeside for drivers without a faster way: it reads one row at a time,
// several of them concurrently.
func EachBeside(ctx context.Context, s Store, in Range, opts ScanOptions, beside ...Beside) ([]Found, error) {
	var all []Found
	opts.KeysOnly = true
	for row, err := range s.Scan(ctx, in, opts) {
		if err != nil {
			return nil, err
		}
		all = append(all, Found{Key: row.Key, Rows: make([]Row, len(beside)), Errs: make([]error, len(beside))})
	}
	return all, FillBeside(ctx, s, all, beside...)
}

// FillBeside reads the rows that were not found, and leaves the others.
func FillBeside(ctx context.Context, s Store, all []Found, beside ...Beside) error {
	const atOnce = 64
	var work sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, found := range all {
		for i, b := range beside {
			if found.Rows[i].Key != "" || found.Errs[i] != nil {
				continue
			}
			slots <- struct{}{}
			work.Go(func() {
				defer func() { <-slots }()
				for row, err := range s.Scan(ctx, b.Of(found.Key), ScanOptions{Reverse: true, Limit: 1}) {
					found.Rows[i], found.Errs[i] = row, err
				}
			})
		}
	}
	work.Wait()
	for _, found := range all {
		for _, err := range found.Errs {
			if err != nil && !Damaged(err) {
				return err
			}
		}
	}
	return nil
}
