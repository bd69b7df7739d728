package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A setting that the code reads under a name that does not exist would silently be
// empty.
func TestSettingsThatAreReadExist(t *testing.T) {
	reads := regexp.MustCompile(`\.(?:text|on|number|size)\("([a-z_.]+)"\)`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range reads.FindAllSubmatch(source, -1) {
			found++
			if !slices.ContainsFunc(knownSettings, func(s setting) bool { return s.key == string(match[1]) }) {
				t.Errorf("%s reads the setting %q, which does not exist", file, match[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d reads of settings; the pattern no longer fits the code", found)
	}
}
