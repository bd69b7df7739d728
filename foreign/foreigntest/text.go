package foreigntest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// compressed is the suffix of files that hold their text compressed. The cases about
// damage and growth change the text of such a file.
const compressed = ".zst"

// Compress compresses each file below a directory whose name ends in suffix, as agents do
// with old records: FILE becomes FILE.zst.
func Compress(t testing.TB, dir, suffix string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(path, suffix) {
			return err
		}
		save(t, path+compressed, load(t, path))
		return os.Remove(path)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// load returns the text of a file.
func load(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil && strings.HasSuffix(path, compressed) {
		var d *zstd.Decoder
		if d, err = zstd.NewReader(nil); err == nil {
			defer d.Close()
			data, err = d.DecodeAll(data, nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// save replaces the text of a file.
func save(t testing.TB, path string, data []byte) {
	t.Helper()
	write(t, path, data)
}

// write replaces the text of a file with some parts.
func write(t testing.TB, path string, parts ...[]byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var w io.WriteCloser = f
	if strings.HasSuffix(path, compressed) {
		if w, err = zstd.NewWriter(f, zstd.WithEncoderConcurrency(1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
