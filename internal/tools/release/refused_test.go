package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsRefused(t *testing.T) {
	t.Chdir("../../..")
	for _, c := range []struct{ version, targets, key, want string }{
		{"", "linux/amd64", "", "is not like v0.1.0"},
		{"0.1.0", "linux/amd64", "", "is not like v0.1.0"},
		{"v99.0.0", "linux/amd64", "", "the file VERSION says"},
		{"v0.1.0", "linux", "", "is none of darwin/amd64"},
		{"v0.1.0", "linux/amd64,plan9/amd64", "", `"plan9/amd64" is none of`},
		{"v0.1.0", "linux/amd64, linux/amd64", "", "twice"},
		{"v0.1.0", "linux/amd64", "LICENSE", "not a file of minisign"},
		{"v0.1.0", "linux/amd64", "/nowhere/key", "no such file"},
	} {
		r := &release{version: c.version}
		if err := r.prepare(c.targets, c.key, true); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (&release{version: "v0.1.0", only: "everything"}).prepare("linux/amd64", "", true); err == nil || !strings.Contains(err.Error(), "is none of archives") {
		t.Errorf("an unknown step: %v", err)
	}
	r := fakeIn(t)
	if err := r.make(t.Context()); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a directory with files: %v", err)
	}
	r.out = filepath.Join(r.out, "mine")
	if err := r.make(t.Context()); err == nil {
		t.Error("a file in the place of the directory was taken")
	}
}

// TestAReleaseThatFailsLeavesNothing: half a release is not published by mistake.
func TestAReleaseThatFailsLeavesNothing(t *testing.T) {
	r := fake(t)
	r.certificates = "/nowhere"
	where := r.out
	if err := r.make(t.Context()); err == nil {
		t.Fatal("an image without certificates was made")
	}
	if found, err := os.ReadDir(filepath.Dir(where)); err != nil || len(found) > 0 {
		t.Errorf("it left %v, %v", found, err)
	}
	r.certificates = "LICENSE"
	if files := made(t, r); files["SHA256SUMS"] == "" || r.out != where {
		t.Errorf("the next one made %d files in %s", len(files), r.out)
	}
}

// TestTheTagIsTheCommit: a release of another commit than the tag's is refused.
func TestTheTagIsTheCommit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("VERSION", []byte("0.1.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "one"}, {"tag", "v0.1.0"}, {"commit", "-q", "--allow-empty", "-m", "two"},
	} {
		if _, err := git(append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&release{version: "v0.1.0"}).prepare("linux/amd64", "", false); err == nil || !strings.Contains(err.Error(), "the tag v0.1.0 is on") {
		t.Errorf("another commit than the tag's: %v", err)
	}
	if _, err := git("checkout", "-q", "v0.1.0"); err != nil {
		t.Fatal(err)
	}
	if err := (&release{version: "v0.1.0"}).prepare("linux/amd64", "", false); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile("mine", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&release{version: "v0.1.0"}).prepare("linux/amd64", "", false); err == nil || !strings.Contains(err.Error(), "in no commit") {
		t.Errorf("with changes: %v", err)
	}
}

// fakeIn is a release into a directory that has a file.
func fakeIn(t *testing.T) *release {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return &release{out: dir}
}
