package main

import (
	"bytes"
	"path/filepath"
	"testing"
)

func TestADiaryGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var out bytes.Buffer
	for _, said := range []string{"one", "two"} {
		out.Reset()
		if err := run(t.Context(), &out, dir, said); err != nil {
			t.Fatal(err)
		}
	}
	want := "user: one\nassistant: noted: one\nuser: two\nassistant: noted: two\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}
