package search_test

import (
	"errors"
	"testing"

	"github.com/stet-dev/stet/search"
)

// FuzzQuery holds every input to the promise that none is a syntax error.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{
		"retry", `"a phrase`, `""`, `path:"a b" tool:x role:user`, "a AND b OR NOT c", "NEAR(a b, 3)", "^a", "a*", "{body} : a", "body:a", "- a", "a + b",
		"(", ")", "'", "\x00", "a\x00b", "\xff\xfe", "日本", "ｆｕｌｌ", "path:path:path:", "a\"b\"c", "٣", "\u0345", "𞤀", "\U0001e900*", "ﷺ", "�", "٭",
	} {
		f.Add(q)
	}
	fixture := sample(f)
	f.Fuzz(func(t *testing.T, q string) {
		page, err := fixture.index.Search(t.Context(), q, nil)
		if errors.Is(err, search.ErrEmptyQuery) {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", q, err)
		}
		for _, h := range page.Hits {
			for _, m := range h.Snippet.Matches {
				if m.Start < 0 || m.End > len(h.Snippet.Text) || m.Start >= m.End {
					t.Errorf("%q: match %v in %q", q, m, h.Snippet.Text)
				}
			}
		}
	})
}
