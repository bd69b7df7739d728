package sqlite

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stet-dev/stet/blob"
)

func TestReplace(t *testing.T) {
	small, large := []byte("small"), bytes.Repeat([]byte("large"), 50_000)
	for _, test := range []struct {
		name     string
		old, new []byte
	}{
		{"small by small", []byte("old"), small},
		{"small by large", []byte("old"), large},
		{"large by small", bytes.Repeat([]byte("old"), 50_000), small},
		{"large by large", bytes.Repeat([]byte("old"), 50_000), large},
		{"by nothing", []byte("old"), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := openTest(t, nil)
			b := blob.New(test.old)
			if err := db.Blobs().Put(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if err := db.Blobs().ReplaceFrom(t.Context(), b.ID, bytes.NewReader(test.new), int64(len(test.new))); err != nil {
				t.Fatal(err)
			}
			got, err := db.Blobs().Get(t.Context(), b.ID)
			if err != nil || !bytes.Equal(got, test.new) {
				t.Errorf("Get = %d bytes, %v; want %d bytes", len(got), err, len(test.new))
			}
			if left := objectFiles(t, db); len(left) > 1 {
				t.Errorf("object files left: %q", left)
			}
		})
	}
}

func objectFiles(t *testing.T, db *DB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(db.Dir(), objectsName, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestReplaceThatFails(t *testing.T) {
	db := openTest(t, nil)
	if err := db.Blobs().ReplaceFrom(t.Context(), blob.Sum(nil), bytes.NewReader(nil), 0); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Replace of an absent blob = %v, want ErrNotFound", err)
	}
	b := blob.New([]byte("content"))
	if err := db.Blobs().Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{3, 1 << 20} {
		if err := db.Blobs().ReplaceFrom(t.Context(), b.ID, bytes.NewReader([]byte("four")), size); !errors.Is(err, blob.ErrMismatch) {
			t.Errorf("Replace announced as %d bytes = %v, want ErrMismatch", size, err)
		}
	}
	if got, err := db.Blobs().Get(t.Context(), b.ID); err != nil || string(got) != "content" {
		t.Errorf("after failed replacements Get = %q, %v", got, err)
	}
	if left := objectFiles(t, db); len(left) > 0 {
		t.Errorf("object files left: %q", left)
	}
}

func TestReplaceOfSeveral(t *testing.T) {
	db := openTest(t, nil)
	large := bytes.Repeat([]byte("large"), 50_000)
	first, second, gone := blob.New([]byte("first")), blob.New(large), blob.New([]byte("never stored"))
	if err := db.Blobs().Put(t.Context(), first, second); err != nil {
		t.Fatal(err)
	}
	err := db.Blobs().Replace(t.Context(),
		blob.Blob{ID: first.ID, Data: large}, blob.Blob{ID: gone.ID, Data: large}, blob.Blob{ID: second.ID, Data: []byte("second")})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[blob.ID][]byte{first.ID: large, second.ID: []byte("second")} {
		if got, err := db.Blobs().Get(t.Context(), id); err != nil || !bytes.Equal(got, want) {
			t.Errorf("Get = %d bytes, %v; want %d bytes", len(got), err, len(want))
		}
	}
	if has, err := db.Blobs().Has(t.Context(), gone.ID); err != nil || has[0] {
		t.Errorf("Has of a blob that was never stored = %v, %v", has, err)
	}
	if left := objectFiles(t, db); len(left) != 1 {
		t.Errorf("object files: %q, want one", left)
	}
}

func TestArrivalsComeInOrderAndGoOnBehindAMark(t *testing.T) {
	db := openTest(t, nil)
	put := func(text string) blob.Info {
		t.Helper()
		b := blob.New([]byte(text))
		if err := db.Blobs().Put(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := db.Blobs().Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		return blob.Info{ID: b.ID, Stored: int64(len(text))}
	}
	arrived := func(mark string, want ...blob.Info) string {
		t.Helper()
		got, next, err := db.Blobs().Arrived(t.Context(), mark, 2)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("after %q: %v, %v; want %v", mark, got, err, want)
		}
		return next
	}
	a, b, c := put("a"), put("bb"), put("ccc")
	second := arrived("", a, b)
	third := arrived(second, c)
	if next := arrived(third); next != third {
		t.Errorf("the mark moved to %q although nothing came", next)
	}
	d := put("dddd")
	fourth := arrived(third, d)
	arrived("nonsense", a, b)

	// The numbers of swept rows are given out again, and the mark is not fooled.
	gen, err := db.Blobs().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keepFirst := blob.SweepOptions{Live: func(id blob.ID) bool { return id == a.ID }}
	if _, err := db.Blobs().Sweep(t.Context(), gen, keepFirst); err != nil {
		t.Fatal(err)
	}
	e, f := put("e"), put("f")
	last := arrived(fourth, e, f)
	if next := arrived(last); next != last {
		t.Errorf("the mark moved to %q although nothing came", next)
	}
	if err := db.Blobs().Replace(t.Context(), blob.Blob{ID: a.ID, Data: []byte("again")}); err != nil {
		t.Fatal(err)
	}
	arrived(last, blob.Info{ID: a.ID, Stored: 5})
}

// TestReplaceFromLeavesTheBase has a content streamed in whose base nobody tells.
func TestReplaceFromLeavesTheBase(t *testing.T) {
	db := openTest(t, nil)
	base, leaning := blob.New([]byte("base")), blob.New([]byte("leaning"))
	leaning.Base = base.ID
	if err := db.Blobs().Put(t.Context(), base, leaning); err != nil {
		t.Fatal(err)
	}
	if err := db.Blobs().ReplaceFrom(t.Context(), leaning.ID, bytes.NewReader(leaning.Data), int64(len(leaning.Data))); err != nil {
		t.Fatal(err)
	}
	if info, err := db.Blobs().Info(t.Context(), leaning.ID); err != nil || info.Base != base.ID {
		t.Errorf("Info = %+v, %v; want base %s", info, err, base.ID)
	}
}

// TestAFileThatCannotBeUsedIsNotLeft replaces by a large content with a base that
// is not there.
func TestAFileThatCannotBeUsedIsNotLeft(t *testing.T) {
	db := openTest(t, nil)
	large := bytes.Repeat([]byte("large"), 50_000)
	b := blob.New(large)
	if err := db.Blobs().Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	err := db.Blobs().Replace(t.Context(), blob.Blob{ID: b.ID, Data: bytes.ToUpper(large), Base: blob.Sum(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := db.Blobs().Get(t.Context(), b.ID); err != nil || !bytes.Equal(got, large) {
		t.Errorf("Get = %d bytes, %v; want what was there", len(got), err)
	}
	if left := objectFiles(t, db); len(left) != 1 {
		t.Errorf("object files: %q, want one", left)
	}
}

// TestKeptBytesComeWithTheirBase reads a blob that changes between leaning on one
// and standing alone, each with bytes of its own, small and in a file.
func TestKeptBytesComeWithTheirBase(t *testing.T) {
	db := openTest(t, nil)
	alone, leans := []byte("alone"), bytes.Repeat([]byte("leans"), 50_000)
	base, b := blob.New([]byte("base")), blob.New(alone)
	if err := db.Blobs().Put(t.Context(), base, b); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	wg.Go(func() {
		for ctx.Err() == nil {
			err := db.Blobs().Replace(ctx, blob.Blob{ID: b.ID, Data: leans, Base: base.ID})
			if err == nil {
				err = db.Blobs().Replace(ctx, blob.Blob{ID: b.ID, Data: alone})
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				stop()
			}
		}
	})
	seen := map[blob.ID]int{}
	for ctx.Err() == nil && (seen[base.ID] < 20 || seen[blob.ID{}] < 20) {
		one, err := db.Blobs().Kept(t.Context(), b.ID)
		if errors.Is(err, blob.ErrNotFound) {
			continue // not durable yet
		}
		if err != nil || one.Base.IsZero() != bytes.Equal(one.Data, alone) {
			t.Fatalf("Kept = %d bytes on base %s, %v", len(one.Data), one.Base, err)
		}
		if data, err := db.Blobs().Get(t.Context(), b.ID); err != nil || !bytes.Equal(data, alone) && !bytes.Equal(data, leans) {
			t.Fatalf("Get = %d bytes, %v", len(data), err)
		}
		seen[one.Base]++
	}
}
