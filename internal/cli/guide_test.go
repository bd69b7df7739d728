package cli

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

var updateGuide = flag.Bool("update-guide", false, "write the outputs of docs/GUIDE.md")

// TestGuide runs the commands of the console blocks of docs/GUIDE.md, one after another in
// one home, and compares what they print. With -update-guide it writes the page instead.
func TestGuide(t *testing.T) {
	const page = "../../docs/GUIDE.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, err = exec.LookPath("sh")
	testenv.SkipWithout(t, "sh", err)
	home := t.TempDir()
	r := &guideReader{t: t, home: home, dir: home}
	var out strings.Builder
	inside := false
	var want []string // output of the command before, as the page has it
	for line := range strings.Lines(string(text)) {
		switch {
		case !inside:
			inside = line == "```console\n"
		case line == "```\n" || strings.HasPrefix(line, "$ "):
			r.compare(want)
			out.WriteString(r.got)
			r.got, want = "", nil
			if inside = line != "```\n"; inside {
				r.run(strings.TrimSuffix(line[2:], "\n"))
			}
		default:
			want = append(want, line)
			continue
		}
		out.WriteString(line)
	}
	if *updateGuide {
		if err := os.WriteFile(page, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type guideReader struct {
	t            *testing.T
	home, dir    string
	command, got string
}

// run runs one command of the page.
func (r *guideReader) run(command string) {
	r.t.Helper()
	r.command = command
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+r.home, "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "STET_STORE=", "USER=you", "TZ=UTC", "LC_ALL=C", "NO_COLOR=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("%s: %v\n%s", command, err, out.String())
	}
	if _, dir, ok := strings.Cut(command, "&& cd "); ok {
		r.dir = filepath.Join(r.dir, dir)
	}
	r.got = strings.ReplaceAll(out.String(), r.home, "~")
}

// What differs each time, and what a page shows in its place.
var guideVaries = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "PLAN"},
	{regexp.MustCompile(`\b01[0-9A-Za-z]{6,24}\b`), "ID"},
	{regexp.MustCompile(`\brun-2[0-9a-z-]*`), "RUN"},
	{regexp.MustCompile(`\b\d{1,2} [A-Z][a-z]{2} \d{4}\b`), "DAY"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "DATE"},
	{regexp.MustCompile(`\b\d\d:\d\d(:\d\d)?\b`), "TIME"},
	{regexp.MustCompile(`\b[0-9.]+ ?(B|KiB|MiB|GiB|ms|s)\b`), "SIZE"},
	{regexp.MustCompile(`[ \t]+`), " "}, // columns are as wide as what varies
}

func (r *guideReader) compare(want []string) {
	r.t.Helper()
	if *updateGuide {
		return
	}
	a, b := strings.Join(want, ""), r.got
	for _, v := range guideVaries {
		a, b = v.pattern.ReplaceAllString(a, v.text), v.pattern.ReplaceAllString(b, v.text)
	}
	if a != b {
		r.t.Errorf("docs/GUIDE.md: $ %s\ngot:\n%s\nthe page has:\n%s\n(go test ./internal/cli -run TestGuide -update-guide writes it)", r.command, r.got, strings.Join(want, ""))
	}
}
