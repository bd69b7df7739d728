package agents_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
)

func TestNames(t *testing.T) {
	names := agents.Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("not sorted or not unique: %v", names)
	}
	for _, name := range names {
		if a, err := agents.Find(name); err != nil || a.Name() != name {
			t.Errorf("%s: got %v, %v", name, a, err)
		}
		if !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(name) {
			t.Errorf("%q is not a name", name)
		}
	}
	if _, err := agents.Find("nobody"); !errors.Is(err, foreign.ErrUnknownAgent) {
		t.Errorf("got %v", err)
	}
}

// Cursor is known by name, and the error says what works.
func TestCursorIsImportedOnly(t *testing.T) {
	if _, err := agents.Find(agents.Cursor); !errors.Is(err, foreign.ErrImportOnly) || errors.Is(err, foreign.ErrUnknownAgent) {
		t.Errorf("got %v", err)
	}
	names := agents.Importable()
	if !slices.IsSorted(names) || !slices.Contains(names, agents.Cursor) || len(names) != len(agents.Names())+1 {
		t.Errorf("got %v", names)
	}
}

func ExampleFind() {
	adapter, err := agents.Find("pi")
	fmt.Println(adapter.Name(), err)
	// Output: pi <nil>
}
