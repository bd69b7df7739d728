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
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/internal/minisign"
)

// allTargets are those of the Makefile.
func allTargets(t *testing.T) []target {
	t.Helper()
	_, list, _ := strings.Cut(readText(t, "Makefile"), "\nRELEASE_TARGETS := ")
	list, _, _ = strings.Cut(list, "\n")
	var out []target
	for name := range strings.SplitSeq(list, ",") {
		system, arch, _ := strings.Cut(name, "/")
		out = append(out, target{system, arch})
	}
	return out
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

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
		targets: allTargets(t),
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
	want := []string{"SHA256SUMS", "SHA256SUMS.minisig", "install.sh", "npm-stet-0.1.0.tgz", "stet.json", "stet.pub", "stet.rb", "stet_0.1.0_image.tar"}
	for _, system := range []string{"linux", "darwin", "win32", "freebsd"} {
		want = append(want, "npm-stet-"+system+"-arm64-0.1.0.tgz", "npm-stet-"+system+"-x64-0.1.0.tgz")
	}
	for _, system := range []string{
		"macosx_11_0_arm64", "macosx_11_0_x86_64", "win_amd64", "win_arm64",
		"manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64", "manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64",
	} {
		want = append(want, "stet-0.1.0-py3-none-"+system+".whl")
	}
	for _, processor := range []string{"amd64", "arm64"} {
		for _, system := range []string{"linux", "darwin", "windows", "freebsd"} {
			name := "stet_0.1.0_" + system + "_" + processor
			want = append(want, name+".spdx.json", name+map[bool]string{true: ".zip", false: ".tar.gz"}[system == "windows"])
		}
	}
	slices.Sort(want)
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
	for _, name := range []string{"stet", "stet-hook", "LICENSE", "README.md", "CHANGELOG.md", "completions/stet.bash", "completions/_stet", "completions/stet.fish", "completions/stet.ps1", "man/stet.1", "man/stet-rewind.1"} {
		if got["stet_0.1.0/"+name] == "" {
			t.Errorf("the archive has no %s", name)
		}
	}
	windows, err := zip.NewReader(strings.NewReader(files["stet_0.1.0_windows_amd64.zip"]), int64(len(files["stet_0.1.0_windows_amd64.zip"])))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stet.exe", "stet-hook.exe", "completions/stet.ps1"} {
		if _, err := windows.Open("stet_0.1.0/" + name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"stet.json", "stet_0.1.0_linux_amd64.spdx.json"} {
		if !json.Valid([]byte(files[name])) {
			t.Errorf("%s is not JSON", name)
		}
	}
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
