package workspace

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// verdict walks down to a path as a scan does, reading rules on the way.
func verdict(files map[string]string, path string, isDir bool) bool {
	var r *rules
	dir := ""
	for {
		r = newRules(r, dir, []byte(files[join(dir, gitIgnoreName)]), nil, []byte(excludeAt(files, dir)))
		rest := path[len(dir):]
		if dir != "" {
			rest = rest[1:]
		}
		name, _, deeper := strings.Cut(rest, "/")
		at := join(dir, name)
		if r.ignores(at, name, deeper || isDir) {
			return true
		}
		if !deeper {
			return false
		}
		dir = at
	}
}

func excludeAt(files map[string]string, dir string) string {
	if dir != "" {
		return ""
	}
	return files[".git/info/exclude"]
}

// ignoreCase is a set of ignore files and the paths to ask about.
type ignoreCase struct {
	files map[string]string
	paths []string // a directory ends in /
}

func randomCase(r *rand.Rand, paths int) ignoreCase {
	c := ignoreCase{files: map[string]string{}}
	for _, at := range []string{".gitignore", "a/.gitignore", "a/b/.gitignore", "foo/.gitignore", ".git/info/exclude"} {
		if at != ".gitignore" && r.IntN(3) > 0 {
			continue
		}
		var text strings.Builder
		for range 1 + r.IntN(6) {
			text.WriteString(randomPattern(r))
			text.WriteString([]string{"\n", "\n", "\n", "\n", "\r\n", " \n", "  \n", "\\ \n"}[r.IntN(8)])
		}
		c.files[at] = text.String()
	}
	for range paths {
		c.paths = append(c.paths, randomPath(r))
	}
	return c
}

var ignoreWords = []string{"a", "b", "c", "ab", "abc", "foo", "bar", "foo.o", "a.log", "x y", "#x", "!x", "B", "[a]", "a-b", "a\\b", "é", "d1", "*", " ", "a ", "-", "^a", "]"}

func randomPath(r *rand.Rand) string {
	n := 1 + r.IntN(4)
	var parts []string
	for range n {
		parts = append(parts, ignoreWords[r.IntN(len(ignoreWords))])
	}
	p := strings.Join(parts, "/")
	if r.IntN(3) == 0 {
		p += "/"
	}
	return p
}

var ignorePieces = []string{
	"a", "b", "c", "foo", "bar", ".o", ".log", "*", "*", "*", "?", "**", "**/", "/**", "/", "/", "[a-c]", "[!a]", "[^b]", "[]a]", "[a-]",
	"[[:alpha:]]", "[[:digit:]b]", "[[:bad:]]", "[[:alpha]", "[", "]", "\\*", "\\a", "\\", "\\!", "\\#", "#", "!", " ", "\\ ", "[\\]]", "[a\\-c]",
	"[c-a]", "é", "1", "-", "[!]a]", "[*]", "[/]", "\\/", "***", "*/", "/*", "x", "y", "[-a]", "[[a]", "B", "[A-Z]", "[[:upper:]]", "[[:punct:]]",
}

func randomPattern(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(6) == 0 {
		b.WriteByte('!')
	}
	if r.IntN(6) == 0 {
		b.WriteByte('/')
	}
	if r.IntN(3) == 0 { // close to the paths, so that much matches
		b.WriteString(strings.TrimSuffix(randomPath(r), "/"))
	}
	for range r.IntN(5) {
		b.WriteString(ignorePieces[r.IntN(len(ignorePieces))])
	}
	if r.IntN(6) == 0 {
		b.WriteByte('/')
	}
	return b.String()
}

func TestIgnoreAgreesWithGit(t *testing.T) {
	_, err := exec.LookPath("git")
	testenv.SkipWithout(t, "git", err)
	const perRepo = 400
	repos := testenv.Scale(30, 1000)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	cases, ignored := 0, 0
	for range repos {
		c := randomCase(r, perRepo)
		want := askGit(t, c)
		for i, path := range c.paths {
			got := verdict(c.files, strings.TrimSuffix(path, "/"), strings.HasSuffix(path, "/"))
			cases++
			if want[i] {
				ignored++
			}
			if got != want[i] {
				t.Fatalf("seed %d: path %q: ignored = %v, git says %v, with %q", seed, path, got, want[i], c.files)
			}
		}
	}
	t.Logf("%d cases, %d ignored", cases, ignored)
	// Few repositories, as under the race detector, may ignore nothing by chance.
	if cases < repos*perRepo/2 || repos >= 30 && (ignored < cases/50 || ignored > cases*49/50) {
		t.Errorf("%d cases of which %d are ignored say little", cases, ignored)
	}
}

// askGit asks `git check-ignore` about all paths of a case. Directories exist on
// disk, since git tells them from files by looking.
func askGit(t *testing.T, c ignoreCase) []bool {
	t.Helper()
	testenv.Need(t, "git")
	root := t.TempDir()
	if out, err := git(root, "", "init", "-q", "."); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	for at, text := range c.files {
		write(t, root, map[string]string{at: text})
	}
	for i, path := range c.paths {
		// A name cannot be a directory in one path and a file in another.
		clean := strings.TrimSuffix(path, "/")
		info, err := os.Lstat(filepath.Join(root, clean))
		switch {
		case err == nil && info.IsDir():
			c.paths[i] = clean + "/"
		case err == nil:
			c.paths[i] = clean
		case strings.HasSuffix(path, "/"):
			if err := os.MkdirAll(filepath.Join(root, clean), 0o755); err != nil {
				c.paths[i] = "a/none" // something above is a file
			}
		default:
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, clean)), 0o755); err != nil {
				c.paths[i] = "a/none"
			} else if err := os.WriteFile(filepath.Join(root, clean), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, path := range c.paths { // what was made later decides
		clean := strings.TrimSuffix(path, "/")
		if info, err := os.Lstat(filepath.Join(root, clean)); err == nil && info.IsDir() {
			c.paths[i] = clean + "/"
		} else {
			c.paths[i] = clean
		}
	}
	var in strings.Builder
	for _, path := range c.paths {
		fmt.Fprintf(&in, "%s\x00", strings.TrimSuffix(path, "/"))
	}
	out, err := git(root, in.String(), "check-ignore", "--no-index", "--stdin", "-v", "-n", "-z")
	if exit := (*exec.ExitError)(nil); err != nil && !(asExit(err, &exit) && exit.ExitCode() == 1) {
		t.Fatalf("git check-ignore: %v: %s", err, out)
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(fields) != 4*len(c.paths) {
		t.Fatalf("git answered %d fields for %d paths", len(fields), len(c.paths))
	}
	want := make([]bool, len(c.paths))
	for i := range c.paths {
		pattern := fields[4*i+2]
		want[i] = pattern != "" && !strings.HasPrefix(pattern, "!")
	}
	return want
}

func asExit(err error, target **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*target = e
	return ok
}

func git(dir, stdin string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+dir,
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	err := cmd.Run()
	return out.Bytes(), err
}

func TestStetIgnoreBeatsGitIgnore(t *testing.T) {
	above := newRules(nil, "", []byte("*.log\n"), []byte("!debug.log\n/gen\n"), []byte("x\n"))
	r := newRules(above, "d", []byte("debug.log\n!gen\n!x\n"), nil, nil)
	for _, c := range []struct {
		path string
		want bool
	}{
		{"d/debug.log", false}, {"d/other.log", true}, {"d/gen", false}, {"d/x", false}, {"d/y", false},
	} {
		if got := r.ignores(c.path, filepath.Base(c.path), false); got != c.want {
			t.Errorf("ignores(%q) = %v, want %v", c.path, got, c.want)
		}
	}
	if !above.ignores("gen", "gen", false) {
		t.Error("gen at the root is not ignored")
	}
}

// A pattern that would keep a naive matcher busy for years ends soon.
func TestWildmatchIsBounded(t *testing.T) {
	text := strings.Repeat("a/", 100) + "b"
	pattern := strings.Repeat("**/a/", 40) + "c"
	if wildmatch(pattern, text, true) {
		t.Error("matches")
	}
	if !wildmatch("**/a/**/b", text, true) {
		t.Error("a plain pattern does not match")
	}
}

func FuzzIgnore(f *testing.F) {
	f.Add([]byte("*.o\n!a/b\n/x/**/y\n[[:alpha:]]\n\\ \n"), "a/b/c.o")
	f.Add([]byte("\xef\xbb\xbf#c\r\n[a-\\]]\n**\n"), "x")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		if CheckPath(path) != nil {
			return
		}
		r := newRules(nil, "", data, nil, nil)
		name := path[strings.LastIndexByte(path, '/')+1:]
		dir, file := r.ignores(path, name, true), r.ignores(path, name, false)
		again := newRules(nil, "", nil, data, nil)
		if again.ignores(path, name, true) != dir || again.ignores(path, name, false) != file {
			t.Errorf("the same rules judge %q differently", path)
		}
	})
}
