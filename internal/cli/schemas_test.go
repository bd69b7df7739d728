package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every shape of our JSON is in one table.
func TestEveryJSONShapeIsDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "format", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	schema := regexp.MustCompile(`"stet(\.[a-z]+)+\.v[0-9]+"`)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range schema.FindAllString(string(source), -1) {
			found++
			if name = strings.Trim(name, `"`); !strings.Contains(string(page), name) {
				t.Errorf("%s: %s has no line in docs/format/cli.md", file, name)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d shapes found: has their spelling changed?", found)
	}
}
