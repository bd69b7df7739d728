package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
)

func extensionCases() []Case {
	return []Case{
		{Name: "a-list-grows-300-times", Bytes: 16 << 10, Func: growingList},
		{Name: "resumed-list", Func: resumedList},
		{Name: "extension-may-cut", Func: extensionCuts},
		{Name: "extension-put-again", Func: extensionAgain},
		{Name: "two-extensions-of-one-blob", Func: twoExtensions},
		{Name: "extension-of-absent-blob", Func: extensionOfAbsent},
		{Name: "extension-that-keeps-too-much", Func: extensionTooLong},
		{Name: "similar-blob-is-a-hint", Bytes: 64 << 10, Func: likeHint},
		{Name: "hint-at-absent-blob-is-harmless", Func: likeAbsent},
	}
}

// growingList grows a list as a conversation does: one entry at a time, with a tail
// that changes.
func growingList(ctx context.Context, s blob.Store) error {
	type version struct {
		id   blob.ID
		data []byte
	}
	var versions []version
	builder, appended := blob.NewBuilder(), []byte(nil)
	for i := range 300 {
		entry := fresh(34)
		builder.Append(entry)
		appended = append(appended, entry...)
		tail := fresh(i % 7)
		b := builder.Blob(tail)
		if err := put(ctx, s, b); err != nil {
			return fmt.Errorf("version %d: %w", i, err)
		}
		builder.Commit(b)
		versions = append(versions, version{b.ID, slices.Concat(appended, tail)})
		if i == 150 {
			if err := s.Flush(ctx); err != nil {
				return err
			}
		}
	}
	for i, v := range versions {
		if err := wantContent(ctx, s, v.id, v.data); err != nil {
			return fmt.Errorf("version %d: %w", i, err)
		}
	}
	return nil
}

func resumedList(ctx context.Context, s blob.Store) error {
	first := freshBlob(1000)
	if err := put(ctx, s, first); err != nil {
		return err
	}
	builder := blob.ResumeBuilder(first.ID, first.Data[:900])
	more, tail := fresh(50), fresh(5)
	builder.Append(more)
	b := builder.Blob(tail)
	if err := put(ctx, s, b); err != nil {
		return err
	}
	return wantContent(ctx, s, b.ID, slices.Concat(first.Data[:900], more, tail))
}

// extension returns the blob that begins with the first keep bytes of like.
func extension(like blob.Blob, keep int, rest []byte) (blob.Blob, []byte) {
	whole := slices.Concat(like.Data[:keep], rest)
	return blob.Blob{ID: blob.Sum(whole), Data: rest, Like: like.ID, Keep: int64(keep)}, whole
}

func extensionCuts(ctx context.Context, s blob.Store) error {
	like := freshBlob(1000)
	if err := put(ctx, s, like); err != nil {
		return err
	}
	for _, keep := range []int{1, 64, 999, 1000} {
		for _, rest := range [][]byte{nil, fresh(1), fresh(300)} {
			b, whole := extension(like, keep, rest)
			if err := put(ctx, s, b); err != nil {
				return err
			}
			if err := wantContent(ctx, s, b.ID, whole); err != nil {
				return fmt.Errorf("%d bytes kept, %d added: %w", keep, len(rest), err)
			}
		}
	}
	return nil
}

func extensionAgain(ctx context.Context, s blob.Store) error {
	like := freshBlob(1000)
	b, whole := extension(like, 500, fresh(100))
	if err := put(ctx, s, like); err != nil {
		return err
	}
	if err := put(ctx, s, b, b); err != nil {
		return err
	}
	if err := put(ctx, s, blob.New(slices.Clone(whole)), b); err != nil {
		return err
	}
	return wantContent(ctx, s, b.ID, whole)
}

func twoExtensions(ctx context.Context, s blob.Store) error {
	like := freshBlob(500)
	if err := put(ctx, s, like); err != nil {
		return err
	}
	left, leftWhole := extension(like, 500, fresh(20))
	right, rightWhole := extension(like, 400, fresh(200))
	if err := put(ctx, s, left, right); err != nil {
		return err
	}
	return errors.Join(
		wantContent(ctx, s, left.ID, leftWhole),
		wantContent(ctx, s, right.ID, rightWhole),
		wantContent(ctx, s, like.ID, like.Data))
}

func extensionOfAbsent(ctx context.Context, s blob.Store) error {
	b, _ := extension(freshBlob(100), 50, fresh(10))
	if err := s.Put(ctx, b); !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("put an extension of an absent blob: got %v, want ErrNotFound", err)
	}
	return wantAbsent(ctx, s, b.ID)
}

func extensionTooLong(ctx context.Context, s blob.Store) error {
	like := freshBlob(100)
	if err := put(ctx, s, like); err != nil {
		return err
	}
	for _, keep := range []int64{101, 1 << 40} {
		b := freshBlob(50)
		b.Like, b.Keep = like.ID, keep
		if err := s.Put(ctx, b); !errors.Is(err, blob.ErrMismatch) {
			return fmt.Errorf("put that keeps %d of 100 bytes: got %v, want ErrMismatch", keep, err)
		}
		if err := wantAbsent(ctx, s, b.ID); err != nil {
			return err
		}
	}
	return nil
}

// likeHint edits a text in its middle, again and again, each version like the
// one before.
func likeHint(ctx context.Context, s blob.Store) error {
	data := fresh(60 << 10)
	previous := blob.New(slices.Clone(data))
	if err := put(ctx, s, previous); err != nil {
		return err
	}
	versions := []blob.Blob{previous}
	for i := range 20 {
		at := (i * 7919) % len(data)
		data = slices.Concat(data[:at], fresh(i*10), data[min(len(data), at+i*5):])
		b := blob.New(slices.Clone(data))
		b.Like = previous.ID
		if err := put(ctx, s, b); err != nil {
			return err
		}
		previous = b
		versions = append(versions, b)
	}
	for i, b := range versions {
		if err := wantContent(ctx, s, b.ID, b.Data); err != nil {
			return fmt.Errorf("version %d: %w", i, err)
		}
	}
	return nil
}

func likeAbsent(ctx context.Context, s blob.Store) error {
	absent, b, self := freshBlob(1000), freshBlob(1000), freshBlob(1000)
	b.Like, self.Like = absent.ID, self.ID
	if err := put(ctx, s, b, self); err != nil {
		return err
	}
	// Two blobs that hint at each other must not come to depend on each other.
	self.Like = b.ID
	b.Like = self.ID
	if err := put(ctx, s, self, b); err != nil {
		return err
	}
	return errors.Join(
		wantContent(ctx, s, b.ID, b.Data),
		wantContent(ctx, s, self.ID, self.Data),
		wantAbsent(ctx, s, absent.ID))
}
