package foreign_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/internal/testenv"
)

func TestConnectQuotesForAShell(t *testing.T) {
	for _, c := range []struct {
		command    []string
		line, ours string
	}{
		{[]string{"/usr/bin/stet", "hook", "codex"}, "/usr/bin/stet hook codex Stop", " hook codex Stop"},
		{[]string{"/My Programs/it's $HOME", "hook", "pi"}, `'/My Programs/it'\''s $HOME' hook pi Stop`, " hook pi Stop"},
		{[]string{"stet"}, "stet Stop", "stet Stop"},
		{[]string{"", "a;b"}, "'' 'a;b' Stop", " 'a;b' Stop"},
		{[]string{"stet", "caf\xe9 \xff'\ufffd"}, `stet 'caf'"$(printf '\351')"' '"$(printf '\377')"''\'''"$(printf '\357')""$(printf '\277')""$(printf '\275')" Stop`,
			` 'caf'"$(printf '\351')"' '"$(printf '\377')"''\'''"$(printf '\357')""$(printf '\277')""$(printf '\275')" Stop`},
	} {
		connect := foreign.Connect{Command: c.command}
		if got := connect.Line("Stop"); got != c.line {
			t.Errorf("line: got %s, want %s", got, c.line)
		}
		if got := connect.Ours("Stop"); got != c.ours {
			t.Errorf("ours: got %q, want %q", got, c.ours)
		}
	}
}

func TestCommandLineIsText(t *testing.T) {
	for word, want := range map[string]string{
		"b\xe9.txt": `$'b\351.txt'`, "it's \\ \xff\xfe7": `$'it\'s \\ \377\3767'`, "café": "'café'", "\xe2\x82": `$'\342\202'`,
	} {
		if got := foreign.CommandLine(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

// words are arguments that are hard to pass on.
var words = []string{"plain", "", "a b", "o'brien", `say "hi"`, `back\slash\n`, "a&b;c|d", "$HOME `id` $(id) %s *", "new\nline\n", "café", "caf\xe9", "\xff\xfe7\xe9'\ufffd"}

// A shell, and a program that starts the words as texts, pass each word on as it is.
func TestCommandsPassWordsOn(t *testing.T) {
	sh, err := exec.LookPath("sh")
	testenv.SkipWithout(t, "a POSIX shell", err)
	dir := filepath.Join(t.TempDir(), "it's")
	program := filepath.Join(dir, "program")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!"+sh+"\nprintf '%s\\0' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	check := func(what string, argv ...string) {
		t.Helper()
		for _, word := range argv {
			if !utf8.ValidString(word) {
				t.Errorf("%s: %q is no text", what, word)
			}
		}
		out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
		if got, want := strings.Split(string(out), "\x00"), append(slices.Clone(words), "Stop", ""); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", what, got, err, want)
		}
	}
	c := foreign.Connect{Command: append([]string{program}, words...)}
	check("the line", sh, "-c", c.Line("Stop"))
	check("the words", append(c.Words(), "Stop")...)
	if plain := []string{"stet", "o'brien", "hook"}; !slices.Equal(foreign.Connect{Command: plain}.Words(), plain) {
		t.Error("a shell runs words that are texts")
	}
}
