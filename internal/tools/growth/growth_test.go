package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// squares is a group whose costs are known: a constant and the square of the size.
func squares() *group {
	return &group{
		name: "squares", title: "Sizes & squares", axis: "things", sizes: []int{10, 100, 1000, 10_000}, curves: []string{"same", "square"},
		prepare: func(_ context.Context, _ string, size int) (func() ([]float64, error), func() error, error) {
			return func() ([]float64, error) { return []float64{2, float64(size) * float64(size) / 1000}, nil }, func() error { return nil }, nil
		},
	}
}

func TestTheTableSaysWhatWasNotMeasured(t *testing.T) {
	g := squares()
	if err := g.measure(t.Context(), t.TempDir(), time.Hour, 1000); err != nil {
		t.Fatal(err)
	}
	got := table([]*group{g})
	for _, want := range []string{
		"| same | 2.0 | 2.0 | 2.0 | *2.0* | 0.00 |", "| square | 0.10 | 10 | 1,000 | *100,000* | 2.00 |",
		"extrapolated", "square: grows faster than its size",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "same: ") {
		t.Errorf("a constant is explained in\n%s", got)
	}
}

func TestPlotsAreXML(t *testing.T) {
	g := squares()
	if err := g.measure(t.Context(), t.TempDir(), time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(plot(g))))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestThePageKeepsItsOwnText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("# Page\n<!-- growth -->\nold\n<!-- /growth -->\nend\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := splice(path, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := "# Page\n<!-- growth -->\n\nnew\n<!-- /growth -->\nend\n"; err != nil || string(got) != want {
		t.Errorf("got %q, want %q: %v", got, want, err)
	}
	if err := splice(filepath.Join(t.TempDir(), "none.md"), ""); err == nil {
		t.Error("a page that is not there was written")
	}
}
