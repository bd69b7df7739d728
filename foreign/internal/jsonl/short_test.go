package jsonl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

func TestLineThatStaysTooLongIsReportedAndTheNextIsRead(t *testing.T) {
	long := `{"a":[0` + strings.Repeat(",1", jsonl.MaxLine/2) + `]}`
	lines, _, errs := read(t, "{}\n\n"+long+"\n{\"b\":2}\n", 0)
	if strings.Join(lines, "|") != `{}|{"b":2}` || len(errs) != 1 || !foreign.Unreadable(errs[0]) {
		t.Fatalf("got %d lines, %v", len(lines), errs)
	}
	for _, part := range []string{"f.jsonl, line 3:", fmt.Sprint(len(long)+1, " bytes"), "8 MiB", "raw record"} {
		if !strings.Contains(errs[0].Error(), part) {
			t.Errorf("the error does not say %q: %v", part, errs[0])
		}
	}
}

// Texts of a long line are shortened between two characters, and everything else of it
// stays.
func TestLongTextsAreShortened(t *testing.T) {
	for name, unit := range map[string]string{
		"letters": "x", "escapes": `\"`, "backslashes": `\\`, "runes": "…", "hex": `\u00e9`, "two of different length": `a\n`,
	} {
		for shift := range 3 { // so that the cut falls on each byte of a unit
			text := strings.Repeat("y", shift) + strings.Repeat(unit, 3<<20/len(unit))
			line := `{"before":"\\","text":"` + text + `","after":["b",{"c":"` + text + `"}],"n":1}`
			lines, ends, errs := read(t, line+"\n{}\n", 0)
			if len(lines) != 2 || errs != nil || ends[0] != int64(len(line)+1) {
				t.Fatalf("%s: %d lines, ends %v, %v", name, len(lines), ends, errs)
			}
			var got struct {
				Before, Text string
				After        []any
				N            int
			}
			if err := json.Unmarshal([]byte(lines[0]), &got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got.Before != `\` || got.N != 1 || got.After[0] != "b" || got.After[1].(map[string]any)["c"] != got.Text {
				t.Errorf("%s: the rest of the line is changed", name)
			}
			var all string
			if err := json.Unmarshal([]byte(`"`+text+`"`), &all); err != nil {
				t.Fatal(err)
			}
			kept, note, _ := strings.Cut(got.Text, "\n[…")
			if !strings.HasPrefix(all, kept) || !utf8.ValidString(kept) || len(got.Text) > 1<<20 || len(lines[0]) > 5<<19 {
				t.Errorf("%s: %d bytes are kept of a line of %d", name, len(lines[0]), len(line))
			}
			if unit == "x" && !strings.HasPrefix(note, fmt.Sprintf(" %d bytes more", len(text)-len(kept))) {
				t.Errorf("%s: the note says %q", name, note)
			}
		}
	}
}

// A long line is recognised by the end that it has in the file, and knows its length there.
func TestLongLineInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.jsonl")
	long := `{"a":"` + strings.Repeat("x", 3<<20) + `"}`
	for _, end := range []string{"\n", "\r\n", ""} {
		if err := os.WriteFile(path, []byte("{}\n"+long+end), 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		for line, err := range jsonl.Lines(context.Background(), path, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 2 && (!line.Short || line.Size != int64(len(long)) || line.Offset != 3) {
				t.Errorf("got %d bytes at %d, short: %v", line.Size, line.Offset, line.Short)
			}
			if err := jsonl.Check(path, line.End, line.Sum()); err != nil {
				t.Errorf("line %d: %v", n, err)
			}
		}
		if n != 2 {
			t.Errorf("%d lines", n)
		}
	}
}

// A line that is still being written is not returned, long or not.
func TestTornLongLine(t *testing.T) {
	lines, _, errs := read(t, "{}\n"+`{"a":"`+strings.Repeat("x", 3<<20), 0)
	if len(lines) != 1 || errs != nil {
		t.Errorf("got %d lines, %v", len(lines), errs)
	}
}
