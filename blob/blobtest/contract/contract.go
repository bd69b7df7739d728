// Package contract lists the promises of blob.Store as a table of cases. Each case is
// a function that returns an error if a store breaks the promise. The table needs no
// test binary, so a command can check a live bucket or database with it; package
// blobtest runs it under go test.
//
//	for _, c := range contract.Cases() {
//		if err := c.Func(ctx, store); err != nil {
//			fmt.Println(c.Name, err)
//		}
//	}
//
// Cases may run against a store that holds other blobs and has other users. They
// write unique content (and two tiny well-known blobs), never remove blobs of others,
// and leave their own to the collector.
package contract

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/stet-dev/stet/blob"
)

// Case is one promise.
type Case struct {
	// Name is a few words joined by hyphens.
	Name string
	// Bytes is the size of the largest blob that the case stores, so that a runner
	// can skip what a store is not meant for.
	Bytes int64
	// Func returns an error if the store breaks the promise.
	Func func(ctx context.Context, s blob.Store) error
}

// Cases returns all cases. Those about blob.Lister, Sweeper and Replacer pass at once
// on stores that do not implement them.
func Cases() []Case {
	var cases []Case
	for _, group := range [][]Case{basicCases(), memoryCases(), streamCases(), manyCases(), extensionCases(), concurrencyCases(), listCases(), sweepCases(), replaceCases(), overlapCases(), pastCases()} {
		cases = append(cases, group...)
	}
	for i := range cases {
		cases[i].Bytes = max(cases[i].Bytes, 4<<10)
	}
	return cases
}

// fresh returns n random bytes. Few bytes may have been seen before.
func fresh(n int) []byte {
	data := make([]byte, n)
	rand.Read(data) // never fails, by its contract
	return data
}

// freshBlob returns a blob of n random bytes. No store has it if n is 8 or more; a
// shorter one may be the blob of another case.
func freshBlob(n int) blob.Blob { return blob.New(fresh(n)) }

func put(ctx context.Context, s blob.Store, blobs ...blob.Blob) error {
	if err := s.Put(ctx, blobs...); err != nil {
		return fmt.Errorf("put %d blobs: %w", len(blobs), err)
	}
	return nil
}

// wantContent checks that the store returns exactly data for id by both ways of
// reading, and that Has reports it.
func wantContent(ctx context.Context, s blob.Store, id blob.ID, data []byte) error {
	got, err := s.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("get %s: %w", id.Short(), err)
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("get %s: got %s, want %s", id.Short(), describe(got), describe(data))
	}
	r, err := blob.Open(ctx, s, id)
	if err != nil {
		return fmt.Errorf("open %s: %w", id.Short(), err)
	}
	got, err = io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("read %s: %w", id.Short(), err)
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("read %s: got %s, want %s", id.Short(), describe(got), describe(data))
	}
	return wantHas(ctx, s, true, id)
}

// wantAbsent checks that the store neither has nor returns the ids.
func wantAbsent(ctx context.Context, s blob.Store, ids ...blob.ID) error {
	for _, id := range ids {
		if data, err := s.Get(ctx, id); !errors.Is(err, blob.ErrNotFound) {
			return fmt.Errorf("get absent %s: got %s and error %v, want ErrNotFound", id.Short(), describe(data), err)
		}
		r, err := blob.Open(ctx, s, id)
		if !errors.Is(err, blob.ErrNotFound) {
			if err == nil {
				_ = r.Close()
			}
			return fmt.Errorf("open absent %s: got error %v, want ErrNotFound", id.Short(), err)
		}
	}
	return wantHas(ctx, s, false, ids...)
}

func wantHas(ctx context.Context, s blob.Store, want bool, ids ...blob.ID) error {
	has, err := s.Has(ctx, ids...)
	if err != nil {
		return fmt.Errorf("has: %w", err)
	}
	if len(has) != len(ids) {
		return fmt.Errorf("has: got %d answers for %d ids", len(has), len(ids))
	}
	for i, got := range has {
		if got != want {
			return fmt.Errorf("has %s: got %t, want %t", ids[i].Short(), got, want)
		}
	}
	return nil
}

// describe keeps messages short for content of any size.
func describe(data []byte) string {
	if data == nil {
		return "nothing"
	}
	const shown = 16
	if len(data) <= shown {
		return fmt.Sprintf("%d bytes %x", len(data), data)
	}
	return fmt.Sprintf("%d bytes %x… (SHA-256 %s)", len(data), data[:shown], blob.Sum(data).Short())
}
