package testenv

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a made-up machine with a copy of setup.sh: it has what the script
// itself uses, and what a test adds.
type machine struct {
	t   *testing.T
	dir string
	env []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	m.env = []string{"PATH=" + filepath.Join(m.dir, "bin"), "BIN=" + filepath.Join(m.dir, "bin")}
	script, err := os.ReadFile(filepath.Join(Root(), "internal", "tools", "setup.sh"))
	if err != nil {
		t.Fatal(err)
	}
	m.write("internal/tools/setup.sh", string(script))
	m.write("bin/id", "#!/bin/sh\necho 0\n")
	for _, name := range []string{"sh", "dirname", "mkdir", "cat", "rm", "ls", "touch", "chmod"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(m.dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		m.t.Fatal(err)
	}
}

// setup runs the script and returns what it prints and its code.
func (m *machine) setup(args ...string) (string, int) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "/bin/sh", append([]string{filepath.Join(m.dir, "internal/tools/setup.sh")}, args...)...)
	cmd.Env = m.env
	out, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return string(out), 0
}

func (m *machine) expect(want int, args ...string) string {
	m.t.Helper()
	out, code := m.setup(args...)
	if code != want {
		m.t.Errorf("setup %q ends with %d, want %d:\n%s", args, code, want, out)
	}
	return out
}

func TestWhatCannotBeBroughtIsLeftOutAndNamed(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(m *machine)
		why     string
	}{
		"no apt-get": {func(*machine) {}, "this system has no apt-get"},
		"no root": {func(m *machine) {
			m.write("bin/id", "#!/bin/sh\necho 1000\n")
			m.write("bin/apt-get", "#!/bin/sh\n")
		}, "installing packages needs root or sudo"},
		"no network": {func(m *machine) { m.write("bin/apt-get", "#!/bin/sh\nexit 100\n") }, "apt-get could not install it"},
		"no package": {func(m *machine) { m.write("bin/apt-get", "#!/bin/sh\n") }, "the packages do not bring it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CI", "")
			m := newMachine(t)
			c.prepare(m)
			m.write("bin/git", "#!/bin/sh\n")
			m.write("internal/tools/versitygw.sh", "#!/bin/sh\nexit 1\n")
			m.expect(0, "git", "browser", "versitygw", "node", "page")
			if got := leftOut(m.dir, "page"); got != "it needs node" {
				t.Errorf("the page's modules: %q, want them to need node", got)
			}
			m.expect(0, "--has", "git")
			m.expect(1, "--has", "git", "browser")
			want := "left out, with every test that uses it: browser (" + c.why + "; install chromium), versitygw (it could not be downloaded or built)\n"
			if got := m.expect(0, "--left-out", "git", "browser", "versitygw"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := leftOut(m.dir, "git"); got != "" {
				t.Errorf("git is left out: %s", got)
			}
			if got, want := leftOut(m.dir, "browser"), c.why+"; install chromium"; got != want {
				t.Errorf("tests see %q, want %q", got, want)
			}
			t.Setenv("CI", "true")
			if got := leftOut(m.dir, "browser"); got != "" {
				t.Errorf("with CI=true tests are skipped: %s", got)
			}
			m.env = append(m.env, "CI=true")
			if out := m.expect(1, "git", "browser", "versitygw"); !strings.Contains(out, "setup: missing: browser (") {
				t.Errorf("with CI=true: %q does not name the part", out)
			}
		})
	}
}

func TestWhatIsBroughtLaterIsLeftOutNoMore(t *testing.T) {
	m := newMachine(t)
	m.expect(0, "browser", "curl")
	m.expect(1, "--has", "browser")
	m.write("bin/apt-get", "#!/bin/sh\n[ \"$1\" != install ] || for name in chromium curl; do touch $BIN/$name; chmod +x $BIN/$name; done\n")
	m.expect(0, "browser", "curl")
	m.expect(0, "--has", "browser", "curl")
	if got := m.expect(0, "--left-out", "browser", "curl"); got != "" {
		t.Errorf("left out: %q, want nothing", got)
	}
	m.write("bin/apt-get", "#!/bin/sh\necho called\nexit 1\n")
	if out := m.expect(0, "browser", "curl"); out != "" {
		t.Errorf("what is there is installed again: %q", out)
	}
}

// The package lists say which browser a system has. They are brought up to date first.
func TestTheSmallerBrowserIsInstalledWhereThereIsOne(t *testing.T) {
	m := newMachine(t)
	m.write("bin/apt-cache", "#!/bin/sh\n[ -e $BIN/lists ] && [ \"$2\" = chromium-headless-shell ]\n")
	m.write("bin/apt-get", "#!/bin/sh\ncase \"$1\" in update) touch $BIN/lists ;; install) for name in \"$@\"; do [ \"$name\" != chromium-headless-shell ] || touch $BIN/$name; done; chmod +x $BIN/chromium-headless-shell ;; esac\n")
	m.expect(0, "browser")
	m.expect(0, "--has", "browser")
}

func TestUnknownPartsAreRefused(t *testing.T) {
	if out := newMachine(t).expect(2, "git", "borwser"); !strings.Contains(out, "no part called borwser") {
		t.Errorf("got %q", out)
	}
}

// recorder notes how a test ends.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Skipf(string, ...any)  { r.skipped = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true }

func TestWhatIsMissingFailsInCI(t *testing.T) {
	for _, c := range []struct {
		ci              string
		err             error
		skipped, failed bool
	}{{"", nil, false, false}, {"true", nil, false, false}, {"", os.ErrNotExist, true, false}, {"true", os.ErrNotExist, false, true}} {
		t.Setenv("CI", c.ci)
		r := &recorder{}
		SkipWithout(r, "a shell", c.err)
		if r.skipped != c.skipped || r.failed != c.failed {
			t.Errorf("CI=%q, %v: skipped %v, failed %v", c.ci, c.err, r.skipped, r.failed)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		full, long string
		want       int
	}{{"", "", 5}, {"1", "", 80}, {"", "1", 900}, {"1", "1", 900}} {
		t.Setenv("STET_FULL", c.full)
		t.Setenv("STET_LONG", c.long)
		want := c.want
		if Race() && want == 80 {
			want = 5
		}
		if got := Scale(80, 900); got != want {
			t.Errorf("full %q, long %q: %d, want %d", c.full, c.long, got, want)
		}
	}
	t.Setenv("STET_LONG", "")
	t.Setenv("STET_FULL", "")
	if got := Scale(3, 9); got != 1 {
		t.Errorf("the least is %d, want 1", got)
	}
}
