package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/blob"
)

const (
	// migratePage is how many blobs are looked up at a time.
	migratePage = 256
	// migrateParallel is how many blobs are copied or compared at a time.
	migrateParallel = 4
	// streamed is the size from which a blob is streamed.
	streamed = 1 << 20
)

// copyBlobs copies the blobs that the target lacks: first those without a base, then
// those that depend on them, and so on, because a store rejects a blob without its
// base.
func (m *migration) copyBlobs(ctx context.Context) error {
	m.result.Blobs, m.result.Bytes = 0, 0
	bases := make(map[blob.ID]blob.ID)
	err := m.from.blobs.List(ctx, blob.ID{}, func(info blob.Info) error {
		m.result.Blobs++
		m.result.Bytes += info.Stored
		if !info.Base.IsZero() {
			bases[info.ID] = info.Base
		}
		return nil
	})
	if err != nil {
		return err
	}
	done := int64(0)
	for depth := 0; done < m.result.Blobs; depth++ {
		before := done
		err := m.pages(ctx, func(page []blob.Info) error {
			var level []blob.Info
			for _, info := range page {
				if depthOf(bases, info.ID) == depth {
					level = append(level, info)
				}
			}
			done += int64(len(level))
			m.tell("copying blobs", done, m.result.Blobs)
			return m.copyMissing(ctx, level)
		})
		if err != nil {
			return err
		}
		if done == before {
			break // blobs were removed meanwhile; the comparison reports it
		}
	}
	return m.to.blobs.Flush(ctx)
}

// depthOf is how many other blobs are needed to read one.
func depthOf(bases map[blob.ID]blob.ID, id blob.ID) int {
	for depth := 0; ; depth++ {
		base, ok := bases[id]
		if !ok || depth > len(bases) { // a cycle, which only damage can create
			return depth
		}
		id = base
	}
}

// pages lists the source.
func (m *migration) pages(ctx context.Context, fn func([]blob.Info) error) error {
	page := make([]blob.Info, 0, migratePage)
	err := m.from.blobs.List(ctx, blob.ID{}, func(info blob.Info) error {
		if page = append(page, info); len(page) < migratePage {
			return nil
		}
		full := page
		page = make([]blob.Info, 0, migratePage)
		return fn(full)
	})
	if err != nil {
		return err
	}
	return fn(page)
}

func (m *migration) copyMissing(ctx context.Context, infos []blob.Info) error {
	if len(infos) == 0 {
		return nil
	}
	ids := make([]blob.ID, len(infos))
	for i, info := range infos {
		ids[i] = info.ID
	}
	has, err := m.to.blobs.Has(ctx, ids...)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(migrateParallel)
	for i, info := range infos {
		if has[i] {
			continue
		}
		m.result.CopiedBlobs++
		m.result.CopiedBytes += info.Stored
		group.Go(func() error {
			if err := m.copyBlob(ctx, info); err != nil {
				return fmt.Errorf("blob %s: %w", info.ID, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (m *migration) copyBlob(ctx context.Context, info blob.Info) error {
	if info.Stored < streamed || !info.Base.IsZero() {
		data, err := m.from.blobs.Get(ctx, info.ID)
		if err != nil {
			return err
		}
		return m.to.blobs.Put(ctx, blob.Blob{ID: info.ID, Data: data, Base: info.Base, Given: true})
	}
	r, err := m.from.blobs.Open(ctx, info.ID)
	if err != nil {
		return err
	}
	return errors.Join(m.to.blobs.PutFrom(ctx, info.ID, r, info.Stored), r.Close())
}

// compareBlobs reads every blob on both sides. It ignores additional blobs of the
// target: nothing refers to them, and a collection removes them.
func (m *migration) compareBlobs(ctx context.Context) error {
	targets := make(map[blob.ID]blob.Info)
	err := m.to.blobs.List(ctx, blob.ID{}, func(info blob.Info) error {
		targets[info.ID] = info
		return nil
	})
	if err != nil {
		return err
	}
	var done atomic.Int64
	return m.pages(ctx, func(page []blob.Info) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(migrateParallel)
		for _, info := range page {
			there, ok := targets[info.ID]
			if !ok || there != info {
				return fmt.Errorf("%w: blob %s is missing or has a different size", ErrDiffers, info.ID)
			}
			group.Go(func() error {
				same, err := m.sameBlob(ctx, info)
				if err == nil && !same {
					err = fmt.Errorf("%w: blob %s has different bytes", ErrDiffers, info.ID)
				}
				done.Add(1)
				return err
			})
		}
		err := group.Wait()
		m.tell("comparing blobs", done.Load(), m.result.Blobs)
		return err
	})
}

// sameBlob compares stored bytes.
func (m *migration) sameBlob(ctx context.Context, info blob.Info) (bool, error) {
	if info.Stored < streamed {
		want, err := m.from.blobs.Get(ctx, info.ID)
		if err != nil {
			return false, err
		}
		got, err := m.to.blobs.Get(ctx, info.ID)
		return bytes.Equal(got, want), err
	}
	want, err := m.from.blobs.Open(ctx, info.ID)
	if err != nil {
		return false, err
	}
	defer want.Close()
	got, err := m.to.blobs.Open(ctx, info.ID)
	if err != nil {
		return false, err
	}
	defer got.Close()
	return sameStream(want, got)
}

func sameStream(a, b io.Reader) (bool, error) {
	left, right := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, left)
		k, errB := io.ReadFull(b, right)
		endA, endB := ended(errA), ended(errB)
		switch {
		case errA != nil && !endA:
			return false, errA
		case errB != nil && !endB:
			return false, errB
		case !bytes.Equal(left[:n], right[:k]) || endA != endB:
			return false, nil
		case endA:
			return true, nil
		}
	}
}

func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
