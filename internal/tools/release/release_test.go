package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/minisign"
)

// fake returns a release of programs that are scripts.
func fake(t *testing.T) *release {
	t.Helper()
	t.Chdir("../../..")
	certificates := filepath.Join(t.TempDir(), "certificates")
	if err := os.WriteFile(certificates, []byte("certificates\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	when := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	return &release{
		version: "v0.1.0", commit: strings.Repeat("c0", 20), date: when.Format(time.RFC3339), when: when, certificates: certificates,
		targets: []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"freebsd", "amd64"}},
		out:     filepath.Join(t.TempDir(), "dist"),
		key:     minisign.NewKey([8]byte{7}, ed25519.NewKeyFromSeed(make([]byte, 32))),
		compile: func(_ context.Context, _ *release, t target, program, to string) error {
			script := "#!/bin/sh\necho " + program + " for " + t.os + "/" + t.arch + " \"$@\"\n"
			return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(script), 0o755))
		},
		manual: func(_ context.Context, _ *release, dir string) error {
			var errs []error
			for _, name := range []string{"man/stet.1", "man/stet-rewind.1", "completions/stet.bash", "completions/_stet", "completions/stet.fish", "completions/stet.ps1"} {
				path := filepath.Join(dir, name)
				errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name+"\n"), 0o644))
			}
			return errors.Join(errs...)
		},
		info: func(string) (*debug.BuildInfo, error) {
			return &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{{Path: "example.com/m_x", Version: "v1.2.3"}}}, nil
		},
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, f := range found {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name()] = string(data)
	}
	return out
}

func made(t *testing.T, r *release) map[string]string {
	t.Helper()
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	return contents(t, r.out)
}

func TestTheSameCommitGivesTheSameBytes(t *testing.T) {
	r := fake(t)
	first := made(t, r)
	r.out += "-again"
	again := made(t, r)
	for name, data := range first {
		if again[name] != data {
			t.Errorf("%s is different the second time", name)
		}
	}
	want := []string{
		"SHA256SUMS", "SHA256SUMS.minisig", "install.sh",
		"npm-stet-0.1.0.tgz", "npm-stet-darwin-arm64-0.1.0.tgz", "npm-stet-freebsd-x64-0.1.0.tgz", "npm-stet-linux-arm64-0.1.0.tgz",
		"npm-stet-linux-x64-0.1.0.tgz", "npm-stet-win32-x64-0.1.0.tgz",
		"stet-0.1.0-py3-none-macosx_11_0_arm64.whl",
		"stet-0.1.0-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64.whl",
		"stet-0.1.0-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl",
		"stet-0.1.0-py3-none-win_amd64.whl", "stet.json", "stet.pub", "stet.rb",
		"stet_0.1.0_darwin_arm64.spdx.json", "stet_0.1.0_darwin_arm64.tar.gz", "stet_0.1.0_freebsd_amd64.spdx.json", "stet_0.1.0_freebsd_amd64.tar.gz",
		"stet_0.1.0_image.tar", "stet_0.1.0_linux_amd64.spdx.json", "stet_0.1.0_linux_amd64.tar.gz", "stet_0.1.0_linux_arm64.spdx.json",
		"stet_0.1.0_linux_arm64.tar.gz", "stet_0.1.0_windows_amd64.spdx.json", "stet_0.1.0_windows_amd64.zip",
	}
	var got []string
	for name := range first {
		got = append(got, name)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("made %q\nwant %q", got, want)
	}
}

func TestSumsAreSigned(t *testing.T) {
	r := fake(t)
	files := made(t, r)
	comment, err := minisign.Verify(files["stet.pub"], []byte(files["SHA256SUMS"]), files["SHA256SUMS.minisig"])
	if err != nil || comment != "stet v0.1.0" {
		t.Errorf("got %q, %v", comment, err)
	}
	listed := 0
	for line := range strings.Lines(files["SHA256SUMS"]) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if digest([]byte(files[name])) != sum {
			t.Errorf("the sum of %s is wrong", name)
		}
		listed++
	}
	if listed != len(files)-3 { // the sums, the signature and the key
		t.Errorf("%d of %d files are listed", listed, len(files))
	}
}

// TestArchivesAreWhole reads each kind of archive.
func TestArchivesAreWhole(t *testing.T) {
	files := made(t, fake(t))
	got := untar(t, files["stet_0.1.0_linux_arm64.tar.gz"])
	for _, name := range []string{"stet", "stet-hook", "LICENSE", "README.md", "CHANGELOG.md", "completions/stet.bash", "completions/_stet", "completions/stet.fish", "man/stet.1", "man/stet-rewind.1"} {
		if got["stet_0.1.0/"+name] == "" {
			t.Errorf("the archive has no %s", name)
		}
	}
	windows, err := zip.NewReader(strings.NewReader(files["stet_0.1.0_windows_amd64.zip"]), int64(len(files["stet_0.1.0_windows_amd64.zip"])))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := windows.Open("stet_0.1.0/stet-hook.exe"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"stet.json", "stet_0.1.0_linux_amd64.spdx.json"} {
		if !json.Valid([]byte(files[name])) {
			t.Errorf("%s is not JSON", name)
		}
	}
	sum := digest([]byte(files["stet_0.1.0_darwin_arm64.tar.gz"]))
	if !strings.Contains(files["stet.rb"], "stet_0.1.0_darwin_arm64.tar.gz\"\n      sha256 \""+sum) {
		t.Errorf("the formula is\n%s", files["stet.rb"])
	}
}

// TestImageIsWhole follows the digests from the index to the programs.
func TestImageIsWhole(t *testing.T) {
	image := untar(t, made(t, fake(t))["stet_0.1.0_image.tar"])
	type list struct{ Manifests []descriptor }
	blob := func(d descriptor, into any) string {
		data := image["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if "sha256:"+digest([]byte(data)) != d.Digest || len(data) != d.Size {
			t.Fatalf("%s is not what its digest says", d.Digest)
		}
		if into != nil {
			if err := json.Unmarshal([]byte(data), into); err != nil {
				t.Fatal(err)
			}
		}
		return data
	}
	var top, all list
	if err := json.Unmarshal([]byte(image["index.json"]), &top); err != nil || len(top.Manifests) != 1 {
		t.Fatal(err, image["index.json"])
	}
	blob(top.Manifests[0], &all)
	if len(all.Manifests) != 2 {
		t.Fatalf("the image is for %d targets", len(all.Manifests))
	}
	for _, m := range all.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		var config struct {
			Architecture string
			Rootfs       struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		blob(m, &manifest)
		blob(manifest.Config, &config)
		layer := gunzip(t, blob(manifest.Layers[0], nil))
		if config.Rootfs.DiffIDs[0] != "sha256:"+digest([]byte(layer)) || config.Architecture != m.Platform["architecture"] {
			t.Errorf("the configuration is %+v", config)
		}
		if program := untar(t, layer)["usr/bin/stet"]; !strings.Contains(program, "stet for linux/"+config.Architecture) {
			t.Errorf("the program is %q", program)
		}
	}
}

// TestInstallScript installs from a directory, and refuses an archive that was changed.
func TestInstallScript(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the programs are made for Linux")
	}
	r := fake(t)
	made(t, r)
	prefix := t.TempDir()
	install := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(r.out, "install.sh"))
		cmd.Env = append(os.Environ(), "STET_URL="+r.out, "STET_PREFIX="+prefix)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	want := "installed stet for linux/" + runtime.GOARCH + " version in " + prefix + "/bin\n"
	for range 2 { // again over what is there
		if out, err := install(); err != nil || !strings.HasPrefix(out, want) {
			t.Fatalf("got %q, %v, want %q", out, err, want)
		}
	}
	for _, name := range []string{"bin/stet-hook", "share/man/man1/stet.1", "share/bash-completion/completions/stet"} {
		if _, err := os.Stat(filepath.Join(prefix, name)); err != nil {
			t.Error(err)
		}
	}
	archive := filepath.Join(r.out, r.archiveName(target{"linux", runtime.GOARCH}))
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(archive, data, 0o600); err != nil {
		t.Fatal(err)
	}
	prefix = t.TempDir()
	if out, err := install(); err == nil || !strings.Contains(out, "nothing was installed") {
		t.Errorf("a changed archive: %q, %v", out, err)
	}
	if found, _ := os.ReadDir(prefix); len(found) > 0 {
		t.Errorf("it left %v", found)
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Chdir("../../..")
	for _, c := range []struct{ version, targets, key, want string }{
		{"", "linux/amd64", "", "is not like v0.1.0"},
		{"0.1.0", "linux/amd64", "", "is not like v0.1.0"},
		{"v99.0.0", "linux/amd64", "", "the file VERSION says"},
		{"v0.1.0", "linux", "", "is not like linux/amd64"},
		{"v0.1.0", "linux/amd64", "LICENSE", "not a file of minisign"},
		{"v0.1.0", "linux/amd64", "/nowhere/key", "no such file"},
	} {
		r := &release{version: c.version}
		if err := r.prepare(c.targets, c.key, true); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	r := fakeIn(t)
	if err := r.make(t.Context()); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a directory with files: %v", err)
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

func gunzip(t *testing.T, data string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func untar(t *testing.T, data string) map[string]string {
	t.Helper()
	if bytes.HasPrefix([]byte(data), []byte{0x1f, 0x8b}) {
		data = gunzip(t, data)
	}
	out := make(map[string]string)
	for r := tar.NewReader(strings.NewReader(data)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[header.Name] = string(content)
	}
}
