package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// script runs install.sh with variables that begin with STET_.
func script(t *testing.T, r *release, prefix string, variables ...string) (string, error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the programs are made for Linux")
	}
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(r.out, "install.sh"))
	cmd.Env = append(append(os.Environ(), "STET_URL="+r.out, "STET_PREFIX="+prefix), variables...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestInstallScript installs from a directory, also over what is there.
func TestInstallScript(t *testing.T) {
	r := fake(t)
	made(t, r)
	t.Chdir(filepath.Dir(r.out))
	prefix := t.TempDir()
	want := "installed stet for linux/" + runtime.GOARCH + " version in " + prefix + "/bin\n"
	for _, url := range []string{r.out, filepath.Base(r.out)} {
		if out, err := script(t, r, prefix, "STET_URL="+url); err != nil || !strings.HasPrefix(out, want) {
			t.Fatalf("from %s: got %q, %v, want %q", url, out, err, want)
		}
	}
	for _, name := range []string{"bin/stet-hook", "share/man/man1/stet.1", "share/bash-completion/completions/stet"} {
		if _, err := os.Stat(filepath.Join(prefix, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatTheInstallScriptRefuses: it installs nothing and says why.
func TestWhatTheInstallScriptRefuses(t *testing.T) {
	r := fake(t)
	files := made(t, r)
	archive := r.archiveName(target{"linux", runtime.GOARCH})
	changed := []byte(files[archive])
	changed[len(changed)/2] ^= 1
	for _, c := range []struct{ name, file, data, variable, want string }{
		{"a changed archive", archive, string(changed), "", "nothing was installed"},
		{"an archive cut short", archive, files[archive][:100], "", "nothing was installed"},
		{"a wrong checksum", "SHA256SUMS", strings.ReplaceAll(files["SHA256SUMS"], digest([]byte(files[archive])), strings.Repeat("0", 64)), "", "nothing was installed"},
		{"no archive for this system", "SHA256SUMS", strings.ReplaceAll(files["SHA256SUMS"], archive, "stet_0.1.0_plan9_amd64.tar.gz"), "", "release v0.1.0 has no " + archive},
		{"nothing there", "", "", "STET_URL=" + t.TempDir(), "has no SHA256SUMS"},
		{"a key without minisign", "", "", "STET_KEY=RWQ", "minisign"},
	} {
		t.Run(c.name, func(t *testing.T) {
			prefix := t.TempDir()
			if c.file != "" {
				write := func(data string) {
					if err := os.WriteFile(filepath.Join(r.out, c.file), []byte(data), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				write(c.data)
				defer write(files[c.file])
			}
			out, err := script(t, r, prefix, c.variable)
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("got %q, %v, want %q", out, err, c.want)
			}
			if found, _ := os.ReadDir(prefix); len(found) > 0 {
				t.Errorf("it left %v", found)
			}
		})
	}
}
