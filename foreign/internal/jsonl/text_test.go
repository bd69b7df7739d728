package jsonl_test

import (
	"encoding/json"
	"testing"

	"github.com/stet-dev/stet/foreign/internal/jsonl"
)

// sameText compares Text with the decoder of the library.
func sameText(t *testing.T, raw string) {
	t.Helper()
	if !json.Valid([]byte(raw)) {
		jsonl.Text([]byte(raw)) // must not panic
		return
	}
	var value json.RawMessage
	if err := json.Unmarshal([]byte(raw), &value); err != nil {
		t.Fatal(err)
	}
	var want string
	isText := json.Unmarshal(value, &want) == nil && string(value) != "null"
	if got, ok := jsonl.Text(value); got != want || ok != isText {
		t.Errorf("%s: got %q, %v; want %q, %v", raw, got, ok, want, isText)
	}
}

var texts = []string{
	`""`, `"a"`, `"a\nb\t\"c\"\\\/\b\f\r"`, `"\u00e9\u4e16"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\n"`, `"\ude00\ud83d"`,
	`"\ud83d\ud83d\ude00"`, "\"\xff\"", "\"…\\n…\"", `null`, `1`, `[]`, `{"a":"b"}`, `"`, `"\`, `"\"`, `"\u12"`, `"\ud83d\u12"`, ``, `"\x"`,
}

func TestText(t *testing.T) {
	for _, raw := range texts {
		sameText(t, raw)
	}
}

func FuzzText(f *testing.F) {
	for _, raw := range texts {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) { sameText(t, raw) })
}
