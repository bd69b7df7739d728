package cli

import "testing"

func TestTextIsCutToColumns(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"plain", 5, "plain"},
		{"plain text", 7, "plain…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"cafe\u0301", 4, "cafe\u0301"},
		{"👍👍", 3, "👍…"},
		{"text", 1, "…"},
		{"text", 0, ""},
		{"", 0, ""},
	} {
		got := cut(c.text, c.width)
		if got != c.want || columns(got) > c.width {
			t.Errorf("cut(%q, %d) = %q with %d columns, want %q", c.text, c.width, got, columns(got), c.want)
		}
	}
	if got, want := pad("日本", 6)+"|", "日本  |"; got != want {
		t.Errorf("pad: %q, want %q", got, want)
	}
	if got, want := padLeft("日本", 6), "  日本"; got != want {
		t.Errorf("padLeft: %q, want %q", got, want)
	}
}

func TestNamesInDiffHeaders(t *testing.T) {
	for name, want := range map[string]string{
		"a/plain.go": "a/plain.go",
		"a/é.txt":    "a/é.txt",
		"a/my file":  "a/my file\t",
		"a/new\nl":   `"a/new\012l"`,
		`a/q"u\o`:    `"a/q\"u\\o"`,
		"a/\x1b[31m": `"a/\033[31m"`,
		"a/caf\xe9":  `"a/caf\351"`,
		"a/\u202ex":  `"a/\342\200\256x"`,
	} {
		if got := headerName(name); got != want {
			t.Errorf("headerName(%q) = %q, want %q", name, got, want)
		}
	}
}
