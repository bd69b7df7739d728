package jsonl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

func read(t *testing.T, content string, from int64) (lines []string, marks []int64, errs []error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, err := range jsonl.Lines(context.Background(), path, from) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		lines, marks = append(lines, string(line.Data)), append(marks, line.End)
	}
	return lines, marks, errs
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, content string
		from          int64
		want          string
	}{
		{"two lines", "{\"a\":1}\n{\"b\":2}\n", 0, `{"a":1}|{"b":2}`},
		{"empty lines", "\n{\"a\":1}\r\n\n", 0, `{"a":1}`},
		{"from an offset", "{\"a\":1}\n{\"b\":2}\n", 8, `{"b":2}`},
		{"torn", "{\"a\":1}\n{\"b\":", 0, `{"a":1}`},
		{"no end", "{\"a\":1}\n{\"b\":2}", 0, `{"a":1}|{"b":2}`},
		{"empty", "", 0, ""},
	} {
		lines, _, errs := read(t, c.content, c.from)
		if got := strings.Join(lines, "|"); got != c.want || errs != nil {
			t.Errorf("%s: got %s, %v", c.name, got, errs)
		}
	}
}

func TestReadingContinuesAtEachEnd(t *testing.T) {
	content := "{\"a\":1}\n{\"b\":2}\n{\"c\":3}"
	_, marks, _ := read(t, content, 0)
	for i, mark := range marks {
		if lines, _, errs := read(t, content, mark); len(lines) != len(marks)-1-i || errs != nil {
			t.Errorf("from %d: got %v, %v", mark, lines, errs)
		}
	}
}

func TestOffsetBehindTheEnd(t *testing.T) {
	if _, _, errs := read(t, "{}\n", 100); len(errs) != 1 || !errors.Is(errs[0], foreign.ErrMark) {
		t.Errorf("got %v", errs)
	}
}

func TestMissingFile(t *testing.T) {
	for _, err := range jsonl.Lines(context.Background(), filepath.Join(t.TempDir(), "no"), 0) {
		if !foreign.Unreadable(err) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}
}

// A mark inside a line is of another record: the file was replaced.
func TestOffsetInsideALine(t *testing.T) {
	if lines, _, errs := read(t, "{\"a\":1}\n{\"b\":2}\n", 10); len(lines) != 0 || len(errs) != 1 || !errors.Is(errs[0], foreign.ErrMark) {
		t.Errorf("got %v, %v", lines, errs)
	}
}

// A compressed file is read like its text: the same lines at the same offsets, from each of
// them on, and what is before damage.
func TestCompressedFile(t *testing.T) {
	content := "{\"a\":1}\n\n{\"b\":2}\r\n{\"c\":3}"
	lines, marks, _ := read(t, content, 0)
	path := filepath.Join(t.TempDir(), "f.jsonl.zst")
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	data := w.EncodeAll([]byte(content), nil)
	data = w.EncodeAll([]byte("\n{\"d\":4}\n"), data) // a second frame
	for end, want := range map[int]struct{ least, most, errs int }{len(data): {4, 4, 0}, len(data) - 1: {2, 4, 1}} {
		if err := os.WriteFile(path, data[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		for i, from := range append([]int64{0}, marks...) {
			n, errs := 0, 0
			for line, err := range jsonl.Lines(context.Background(), path, from) {
				switch {
				case err != nil && !foreign.Unreadable(err):
					t.Fatal(err)
				case err != nil:
					errs++
				case i+n < len(lines) && string(line.Data) != lines[i+n]:
					t.Errorf("from %d: line %d is %s", from, n, line.Data)
				default:
					n++
				}
			}
			if n < want.least-i || n > want.most-i || errs != want.errs {
				t.Errorf("%d of %d bytes from %d: %d lines, %d errors", end, len(data), from, n, errs)
			}
		}
		for line, err := range jsonl.Lines(context.Background(), path, 0) {
			if err == nil && jsonl.Check(path, line.End, jsonl.Sum(line.Data)) != nil {
				t.Errorf("the mark behind %s is not known", line.Data)
			}
		}
	}
	for _, err := range jsonl.Lines(context.Background(), path, 1000) {
		if !foreign.Unreadable(err) && !errors.Is(err, foreign.ErrMark) {
			t.Errorf("behind the end: %v", err)
		}
	}
}
