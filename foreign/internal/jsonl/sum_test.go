package jsonl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

func TestAMarkIsKnownByTheLineBeforeIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	long := `{"text":"` + strings.Repeat("x", 2000) + `"}`
	if err := os.WriteFile(path, []byte("{\"a\":1}\r\n\n"+long+"\n{\"b\":2}"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := ""
	for line, err := range jsonl.Lines(context.Background(), path, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if sum != "" && jsonl.Check(path, line.Offset, sum) != nil {
			t.Errorf("the beginning of %.20s is not known", line.Data)
		}
		sum = jsonl.Sum(line.Data)
		if err := jsonl.Check(path, line.End, sum); err != nil {
			t.Errorf("the end of %.20s: %v", line.Data, err)
		}
	}
	for _, at := range []int64{0, 3, 12, 5000} {
		if err := jsonl.Check(path, at, sum); !errors.Is(err, foreign.ErrMark) {
			t.Errorf("offset %d: %v", at, err)
		}
	}
	if err := jsonl.Check(filepath.Join(t.TempDir(), "no"), 1, sum); !foreign.Unreadable(err) {
		t.Errorf("missing file: %v", err)
	}
}
