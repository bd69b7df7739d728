package compressed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/sqlite"
)

// spoiled is a driver in which one blob is damaged, and that tells when it opens
// one as a stream.
type spoiled struct {
	*sqlite.Blobs
	bad    blob.ID
	opened func()
}

func (s *spoiled) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == s.bad {
		return nil, blob.Corrupt(id, "spoiled")
	}
	return s.Blobs.Get(ctx, id)
}

func (s *spoiled) Open(ctx context.Context, id blob.ID) (io.ReadCloser, error) {
	r, err := s.Blobs.Open(ctx, id)
	if err == nil && s.opened != nil {
		s.opened()
	}
	return r, err
}

// noise is text that hardly gets smaller by itself.
func noise(seed uint64, n int) []byte {
	dice := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(dice.Uint32())
	}
	return out
}

// TestDamageKeepsNoOthersFromBeingCompacted has a damaged blob, and one that leans on
// it, before one that is sound.
func TestDamageKeepsNoOthersFromBeingCompacted(t *testing.T) {
	b := newBench(t, nearReads)
	base := noise(1, 20_000)
	edited := append(append(bytes.Clone(base[:8000]), noise(2, 4000)...), base[12_000:]...)
	sound := bytes.Repeat([]byte("sound text "), 1000)
	bad := b.put(version{content: base})[0]
	b.put(version{content: edited, like: bad})
	good := b.put(version{content: sound})[0]
	for _, damage := range []blob.ID{bad, {}} {
		infos, _, err := b.kept.Arrived(t.Context(), "", 16)
		b.must(err)
		s := New(&spoiled{Blobs: b.kept, bad: damage}, &Options{Later: func(int64) {}})
		if _, err := s.Compact(t.Context(), b.kept, infos); err != nil {
			t.Errorf("compact beside damage: %v", err)
		}
		if kind := b.look().kinds[good]; kind != kindZstd {
			t.Errorf("the sound one is of kind %d, want %d", kind, kindZstd)
		}
	}
}

// TestTwoCompactALargeContent has another process compact a content between two looks
// at it.
func TestTwoCompactALargeContent(t *testing.T) {
	b := newBench(t, nearReads)
	content := bytes.Repeat([]byte("a large content "), streamFrom/8)
	id := b.put(version{content: content})[0]
	infos, _, err := b.kept.Arrived(t.Context(), "", 16)
	b.must(err)
	once := false
	driver := &spoiled{Blobs: b.kept}
	driver.opened = func() {
		if !once {
			once = true
			_, err := b.fresh().Compact(t.Context(), b.kept, infos)
			b.must(err)
		}
	}
	if _, err := New(driver, &Options{Later: func(int64) {}}).Compact(t.Context(), driver, infos); err != nil {
		t.Errorf("compact beside another one: %v", err)
	}
	if got, err := b.fresh().Get(t.Context(), id); err != nil || !bytes.Equal(got, content) {
		t.Errorf("get: %d bytes, %v", len(got), err)
	}
}

// TestAPartHoldsNoMore reads what is the beginning of a much larger content.
func TestAPartHoldsNoMore(t *testing.T) {
	b := newBench(t, nearReads)
	whole := noise(3, 1<<20)
	large := b.put(version{content: whole})[0]
	part := b.put(version{content: whole[:2000], like: large})[0]
	if kind := b.look().kinds[part]; kind != kindDelta {
		t.Fatalf("the part is of kind %d, want a delta", kind)
	}
	got, err := b.fresh().Get(t.Context(), part)
	if err != nil || !bytes.Equal(got, whole[:2000]) || cap(got) > 2*2000 {
		t.Errorf("got %d bytes in an array of %d, %v", len(got), cap(got), err)
	}
}

// collected is a driver that calls a collector before it looks for a blob.
type collected struct {
	*sqlite.Blobs
	before  blob.ID
	collect func()
}

func (c *collected) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == c.before {
		c.before = blob.ID{}
		c.collect()
	}
	return c.Blobs.Get(ctx, id)
}

// TestACollectorBetweenABlobAndItsBase takes both, and perhaps another process needs the blob
// again: neither is damage.
func TestACollectorBetweenABlobAndItsBase(t *testing.T) {
	content := noise(4, 20_000)
	edited := append(bytes.Clone(content), noise(5, 200)...)
	for name, want := range map[string]error{"gone": blob.ErrNotFound, "put again": nil} {
		b := newBench(t, nearReads)
		base := b.put(version{content: content})[0]
		id := b.put(version{content: edited, like: base})[0]
		driver := &collected{b.kept, base, func() {
			b.collect(nil)
			if want == nil {
				b.put(version{content: edited})
			}
		}}
		got, err := New(driver, nil).Get(t.Context(), id)
		if !errors.Is(err, want) || want == nil && !bytes.Equal(got, edited) {
			t.Errorf("%s: got %d bytes, %v, want %v", name, len(got), err, want)
		}
	}
}
