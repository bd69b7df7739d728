package transcript_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stet-dev/stet/transcript"
)

func TestFragmentKeepsWhatIsHarmless(t *testing.T) {
	got := transcript.Fragment("# Title\n\nSome *text* and `code`.\n\n```go\nx < y\n```\n", func(language, code string) string {
		if language != "go" || code != "x < y\n" {
			t.Errorf("highlight %q %q", language, code)
		}
		return `<span class="nx">x</span> &lt; y`
	})
	for _, want := range []string{"<h1>Title</h1>", "<em>text</em>", "<code>code</code>", `<pre><code><span class="nx">x</span> &lt; y</code></pre>`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

// dangerous finds elements that load or run something, and attributes that do.
var dangerous = regexp.MustCompile(`(?i)<(script|img|style|div|iframe|svg|form|input)|<[^>]*(style|on[a-z]+)=|href="?(javascript|data)`)

func TestFragmentIsHarmless(t *testing.T) {
	for _, source := range []string{
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "![x](http://other.example/pixel.png)",
		"[x](javascript:alert(1))", "<a href=\"data:text/html,x\">x</a>", "<style>*{display:none}</style>",
		"```html\n<script>alert(1)</script>\n```", "<div style=\"position:fixed\">x</div>", "```x\" onclick=\"y\n```",
	} {
		if got := transcript.Fragment(source, nil); dangerous.MatchString(got) {
			t.Errorf("%q gives %q", source, got)
		}
	}
	bad := transcript.Fragment("```go\nx\n```", func(string, string) string { return `<span onclick="x" class="too long">x</span><script>1</script>` })
	if strings.Contains(bad, "onclick") || strings.Contains(bad, "<script") || strings.Contains(bad, "too long") {
		t.Errorf("a highlighter gets through: %q", bad)
	}
}
