package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAConversationIsSaved(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, filepath.Join(t.TempDir(), "store")); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "saved turn 1\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

// The page has the program as it is.
func TestThePageHasThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/embed/GO.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), "\npackage main\n")
	if !strings.Contains(string(page), "```go\npackage main\n"+code+"```\n") {
		t.Error("docs/embed/GO.md does not have main.go without its first comment")
	}
}
