// Command release makes everything that is published of a version, from one commit:
// archives, packages for Debian, Fedora and Alpine, an image, packages for npm and pip,
// recipes for Homebrew and Scoop, a list of what is inside, checksums and their signature.
//
//	go run ./internal/tools/release -version v0.1.0 -targets linux/amd64,linux/arm64 -out dist
//
// It promises that the same commit gives the same bytes, and that nothing is published:
// docs/RELEASING.md says what to do with the files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/stet-dev/stet/internal/minisign"
)

// passphraseVariable has the passphrase of the key that signs.
const passphraseVariable = "STET_RELEASE_PASSPHRASE"

func main() {
	r := &release{compile: compile, manual: manual, info: infoOf}
	targets := flag.String("targets", "linux/amd64,linux/arm64", "systems and processors to build for; "+strings.Join(known(), ", ")+" are known")
	key := flag.String("key", "", "file of the minisign key that signs; "+passphraseVariable+" has its passphrase")
	changed := flag.Bool("allow-changes", false, "build although the sources are not those of a commit, for tests")
	flag.StringVar(&r.version, "version", "", "the version, as in v0.1.0; it must be the one in the file VERSION")
	flag.StringVar(&r.out, "out", "dist", "directory of the results, which must be new or empty")
	flag.StringVar(&r.only, "only", "", "make one thing only, without a list of checksums: "+strings.Join(stepNames(), ", "))
	flag.StringVar(&r.nfpm, "nfpm", "", "the program nfpm; without it there are no deb, rpm and apk")
	flag.StringVar(&r.certificates, "certificates", "/etc/ssl/certs/ca-certificates.crt", "certificates for the image")
	flag.Parse()
	if err := r.prepare(*targets, *key, *changed); err != nil {
		fail(err)
	}
	if err := r.make(context.Background()); err != nil {
		fail(err)
	}
	if r.only != "" {
		return
	}
	if r.key == nil {
		fmt.Fprintln(os.Stderr, "release: SHA256SUMS is not signed, because there is no -key")
	}
	if r.nfpm == "" {
		fmt.Fprintln(os.Stderr, "release: there are no deb, rpm and apk, because there is no -nfpm")
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "release:", err)
	os.Exit(1)
}

// target is a system and a processor, as Go names them.
type target struct{ os, arch string }

func (t target) exe() string {
	if t.os == "windows" {
		return ".exe"
	}
	return ""
}

// known are the targets that all kinds of packages have names for.
func known() []string {
	var out []string
	for system := range nodeSystems {
		for processor := range nodeProcessors {
			out = append(out, system+"/"+processor)
		}
	}
	slices.Sort(out)
	return out
}

// programs are what a target gets.
var programs = []string{"stet", "stet-hook"}

// release is a version that is made.
type release struct {
	version      string // v0.1.0
	commit, date string
	when         time.Time // of the commit; every file has it
	targets      []target
	out          string
	only         string // the name of a step, or ""
	nfpm         string
	certificates string
	key          *minisign.Key
	work         string // programs and shared files, gone afterwards
	shared       []file // that every archive has

	compile func(ctx context.Context, r *release, t target, program, to string) error
	manual  func(ctx context.Context, r *release, dir string) error
	info    func(path string) (*debug.BuildInfo, error)
}

// number is the version without its letter.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

var versions = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// prepare checks what was asked for.
func (r *release) prepare(targets, key string, changed bool) error {
	next, err := os.ReadFile("VERSION")
	if err != nil {
		return fmt.Errorf("run this in the root of the repository: %w", err)
	}
	if !versions.MatchString(r.version) {
		return fmt.Errorf("-version %q is not like v0.1.0", r.version)
	}
	if want := "v" + strings.TrimSpace(string(next)); r.version != want {
		return fmt.Errorf("-version is %s, but the file VERSION says %s", r.version, want)
	}
	for name := range strings.SplitSeq(targets, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(known(), name) {
			return fmt.Errorf("-targets: %q is none of %s", name, strings.Join(known(), ", "))
		}
		system, arch, _ := strings.Cut(name, "/")
		if slices.Contains(r.targets, target{system, arch}) {
			return fmt.Errorf("-targets has %s twice", name)
		}
		r.targets = append(r.targets, target{system, arch})
	}
	if r.only != "" && !slices.Contains(stepNames(), r.only) {
		return fmt.Errorf("-only: %q is none of %s", r.only, strings.Join(stepNames(), ", "))
	}
	if key != "" {
		text, err := os.ReadFile(key)
		if err != nil {
			return err
		}
		if r.key, err = minisign.ParseKey(string(text), os.Getenv(passphraseVariable)); err != nil {
			return err
		}
	}
	return r.describe(changed)
}

// describe asks git for the commit.
func (r *release) describe(changed bool) error {
	status, err := git("status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" && !changed {
		return fmt.Errorf("the sources have changes that are in no commit:\n%s", status)
	}
	if r.commit, err = git("rev-parse", "HEAD"); err != nil {
		return err
	}
	tag := "refs/tags/" + r.version + "^{commit}"
	if tagged, err := git("rev-parse", "--quiet", "--verify", tag); err == nil && tagged != r.commit && !changed {
		return fmt.Errorf("the tag %s is on %s, but the sources are those of %s", r.version, tagged, r.commit)
	}
	stamp, err := git("log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	var seconds int64
	if _, err := fmt.Sscan(stamp, &seconds); err != nil {
		return err
	}
	r.when = time.Unix(seconds, 0).UTC()
	r.date = r.when.Format(time.RFC3339)
	return nil
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// make makes everything. A release that could not be finished leaves nothing that looks
// like one: the files come into their directory when all of them are there.
func (r *release) make(ctx context.Context) (err error) {
	if found, err := os.ReadDir(r.out); err == nil && len(found) > 0 {
		return fmt.Errorf("%s is not empty", r.out)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r.work, err = os.MkdirTemp("", "stet-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	out := filepath.Clean(r.out)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	if r.out, err = os.MkdirTemp(filepath.Dir(out), "."+filepath.Base(out)+"-"); err != nil {
		return err
	}
	defer func(unfinished string) {
		if r.out = out; err != nil {
			err = errors.Join(err, os.RemoveAll(unfinished))
		}
	}(r.out)
	if err := r.fill(ctx); err != nil {
		return err
	}
	if err := os.Chmod(r.out, 0o755); err != nil {
		return err
	}
	if err := os.Remove(out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(r.out, out)
}

// fill makes the files of a release.
func (r *release) fill(ctx context.Context) (err error) {
	if r.shared, err = r.sharedFiles(ctx); err != nil {
		return err
	}
	for _, t := range r.targets {
		for _, program := range programs {
			if err := r.compile(ctx, r, t, program, r.program(t, program)); err != nil {
				return err
			}
		}
	}
	for _, step := range steps {
		if r.only != "" && r.only != step.name {
			continue
		}
		if err := step.do(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// steps make what is published. Recipes have the checksums of archives, and the last step
// those of everything.
var steps = []struct {
	name string
	do   func(*release, context.Context) error
}{
	{"archives", (*release).archives}, {"packages", (*release).packages}, {"npm", (*release).npm}, {"wheels", (*release).wheels},
	{"image", (*release).image}, {"bill", (*release).bill}, {"recipes", (*release).recipes}, {"sums", (*release).sums},
}

// stepNames are those that can be made alone.
func stepNames() []string {
	var out []string
	for _, step := range steps {
		if step.name != "recipes" && step.name != "sums" {
			out = append(out, step.name)
		}
	}
	return out
}

// program is the path of a program that was built.
func (r *release) program(t target, name string) string {
	return filepath.Join(r.work, t.os+"_"+t.arch, name+t.exe())
}

// programFiles are the programs of a target, below a directory.
func (r *release) programFiles(t target, dir string) ([]file, error) {
	var out []file
	for _, name := range programs {
		data, err := os.ReadFile(r.program(t, name))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name: dir + name + t.exe(), data: data, mode: 0o755})
	}
	return out, nil
}

// names are the variables that say what a program was built from.
const names = "github.com/stet-dev/stet/internal/cli/shortcut."

// compile builds a program so that the machine and the directory leave no trace in it.
func compile(ctx context.Context, r *release, t target, program, to string) error {
	link := strings.Join([]string{"-buildid=", "-X", names + "Release=" + r.version, "-X", names + "Commit=" + r.commit, "-X", names + "Date=" + r.date}, " ")
	cmd := exec.CommandContext(ctx, "internal/tools/build.sh", "-buildvcs=false", "-o", to, "./cmd/"+program)
	cmd.Env = append(os.Environ(), "LINK="+link, "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s for %s/%s: %w", program, t.os, t.arch, err)
	}
	return nil
}

// write creates a file of the release.
func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// targetsOf returns the targets of systems.
func (r *release) targetsOf(systems ...string) []target {
	return slices.DeleteFunc(slices.Clone(r.targets), func(t target) bool { return !slices.Contains(systems, t.os) })
}
