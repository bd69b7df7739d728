package sqlite

import (
	"bytes"
	"errors"
	"path/filepath"
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
			if err := db.Blobs().Replace(t.Context(), b.ID, bytes.NewReader(test.new), int64(len(test.new))); err != nil {
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
	if err := db.Blobs().Replace(t.Context(), blob.Sum(nil), bytes.NewReader(nil), 0); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Replace of an absent blob = %v, want ErrNotFound", err)
	}
	b := blob.New([]byte("content"))
	if err := db.Blobs().Put(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{3, 1 << 20} {
		if err := db.Blobs().Replace(t.Context(), b.ID, bytes.NewReader([]byte("four")), size); !errors.Is(err, blob.ErrMismatch) {
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
