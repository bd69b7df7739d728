package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-dev/stet/internal/minisign"
)

// TestReleaseIsInstalled makes a real release twice, compares the two, installs each kind
// of artefact and runs `stet demo` from it: in a root that has nothing else, where the
// user may have one. make test-release runs it.
func TestReleaseIsInstalled(t *testing.T) {
	if os.Getenv("STET_RELEASE") != "1" {
		t.Skip("make test-release runs this")
	}
	r := fake(t)
	key := filepath.Join(t.TempDir(), "key") // thrown away afterwards
	if err := os.WriteFile(key, []byte(r.key.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	r = &release{version: "v" + strings.TrimSpace(readText(t, "VERSION")), compile: compile, manual: manual, info: infoOf, out: os.Getenv("STET_RELEASE_OUT")}
	r.certificates, r.nfpm = "/etc/ssl/certs/ca-certificates.crt", os.Getenv("NFPM")
	if r.out == "" {
		r.out = filepath.Join(t.TempDir(), "dist")
	}
	if err := r.prepare("linux/"+runtime.GOARCH, key, true); err != nil {
		t.Fatal(err)
	}
	first := made(t, r)
	i := &installation{release: r, files: first}
	t.Run("twice the same", func(t *testing.T) {
		again := *r
		again.out = filepath.Join(t.TempDir(), "again")
		for name, data := range made(t, &again) {
			if first[name] != data {
				t.Errorf("%s is different the second time", name)
			}
		}
	})
	t.Run("signature", func(t *testing.T) {
		if _, err := minisign.Verify(first["stet.pub"], []byte(first["SHA256SUMS"]), first["SHA256SUMS.minisig"]); err != nil {
			t.Error(err)
		}
	})
	t.Run("archive", i.archive)
	t.Run("install.sh", i.script)
	t.Run("deb", i.deb)
	t.Run("rpm", i.rpm)
	t.Run("apk", i.apk)
	t.Run("npm", i.npm)
	t.Run("wheel", i.wheel)
	t.Run("image", i.image)
	for _, name := range slices.Sorted(maps.Keys(first)) {
		t.Logf("%10d  %s", len(first[name]), name)
	}
}

type installation struct {
	release *release
	files   map[string]string
}

// path is the path of an artefact by a part of its name.
func (i *installation) path(t *testing.T, part string) string {
	t.Helper()
	for name := range i.files {
		if strings.Contains(name, part) {
			return filepath.Join(i.release.out, name)
		}
	}
	t.Skipf("the release has no %s here", part)
	return ""
}

// command runs a program of this machine.
func command(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(args[0]); err != nil {
		t.Skipf("%s is not installed", args[0])
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// tryIn runs the program in a root that has nothing but what was installed, as a user.
func (i *installation) tryIn(t *testing.T, root, program string, user uint32) {
	t.Helper()
	home := filepath.Join(root, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		i.try(t, filepath.Join(root, program), home, nil)
		return
	}
	if err := os.Chown(home, int(user), int(user)); err != nil {
		t.Fatal(err)
	}
	i.try(t, program, "/home", &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}})
}

// try runs the demonstration and looks at it.
func (i *installation) try(t *testing.T, program, home string, attributes *syscall.SysProcAttr) {
	t.Helper()
	for _, step := range []struct{ args, want string }{
		{"version", "stet " + i.release.version + " (commit " + i.release.commit[:12] + ", " + i.release.date[:10] + ")"},
		{"demo " + home + "/shop", "shop"},
		{"-C " + home + "/shop log", "add retry to checkout"},
	} {
		cmd := &exec.Cmd{Path: program, Args: append([]string{program}, strings.Fields(step.args)...), SysProcAttr: attributes}
		cmd.Dir, cmd.Env = "/", []string{"HOME=" + home, "PATH=/usr/bin:/bin", "TMPDIR=" + home}
		if attributes == nil {
			cmd.Dir = home
		}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), step.want) {
			t.Fatalf("stet %s: %v\n%s\nwant %s", step.args, err, out, step.want)
		}
	}
}

func (i *installation) archive(t *testing.T) {
	root := t.TempDir()
	command(t, root, "tar", "-xzf", i.path(t, "linux_"+runtime.GOARCH+".tar.gz"))
	program := "/stet_" + i.release.number() + "/stet"
	i.tryIn(t, root, program, 65534)
	info, err := os.Stat(root + program)
	if err != nil {
		t.Fatal(err)
	}
	const limit = 44_000_000
	if info.Size() > limit {
		t.Errorf("stet has %d bytes, which is more than %d; see 'go tool nm -size -sort size'", info.Size(), limit)
	}
}

func (i *installation) script(t *testing.T) {
	prefix, home := t.TempDir(), t.TempDir()
	command(t, prefix, "env", "STET_URL="+i.release.out, "STET_PREFIX="+prefix, "sh", i.path(t, "install.sh"))
	i.try(t, filepath.Join(prefix, "bin", "stet"), home, nil)
}

func (i *installation) deb(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, root, "dpkg", "--root="+root, "--force-not-root", "-i", i.path(t, ".deb"))
	i.tryIn(t, root, "/usr/bin/stet", 65534)
	command(t, root, "dpkg", "--root="+root, "--force-not-root", "-r", "stet")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/stet")); !os.IsNotExist(err) {
		t.Errorf("it is there after its removal: %v", err)
	}
}

func (i *installation) rpm(t *testing.T) {
	root := t.TempDir()
	command(t, root, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "--nosignature", "-i", i.path(t, ".rpm"))
	i.tryIn(t, root, "/usr/bin/stet", 65534)
}

// apk unpacks the package as apk does: it is a row of compressed archives.
func (i *installation) apk(t *testing.T) {
	root := t.TempDir()
	command(t, root, "tar", "--warning=no-unknown-keyword", "-xzf", i.path(t, ".apk"))
	if info := readText(t, filepath.Join(root, ".PKGINFO")); !strings.Contains(info, "pkgname = stet\n") {
		t.Errorf("the package says %s", info)
	}
	i.tryIn(t, root, "/usr/bin/stet", 65534)
}

func (i *installation) npm(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	processor := nodeProcessors[runtime.GOARCH]
	command(t, dir, "npm", "install", "--prefix", dir, "--cache", filepath.Join(dir, "cache"), "--offline", "--no-audit", "--no-fund",
		i.path(t, "npm-stet-linux-"+processor), i.path(t, "npm-stet-"+i.release.number()))
	cmd := filepath.Join(dir, "node_modules", ".bin", "stet")
	i.try(t, cmd, home, nil)
	if out := command(t, dir, "npx", "--offline", "--no", "stet", "version"); !strings.Contains(out, i.release.version) {
		t.Errorf("npx stet version: %s", out)
	}
}

func (i *installation) wheel(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	command(t, dir, "python3", "-m", "venv", dir)
	command(t, dir, filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--no-index", "--disable-pip-version-check", i.path(t, ".whl"))
	i.try(t, filepath.Join(dir, "bin", "stet"), home, nil)
	command(t, dir, filepath.Join(dir, "bin", "pip"), "uninstall", "--quiet", "--yes", "stet")
	if _, err := os.Stat(filepath.Join(dir, "bin", "stet-hook")); !os.IsNotExist(err) {
		t.Errorf("it is there after its removal: %v", err)
	}
}

// image starts the image without an engine: its one layer is the root.
func (i *installation) image(t *testing.T) {
	image := untar(t, i.files[filepath.Base(i.path(t, "_image.tar"))])
	for name, data := range image {
		var manifest struct{ Layers []descriptor }
		if !strings.HasPrefix(name, "blobs/sha256/") || !strings.HasPrefix(data, "{") || json.Unmarshal([]byte(data), &manifest) != nil || len(manifest.Layers) != 1 {
			continue
		}
		root := t.TempDir()
		layer := filepath.Join(t.TempDir(), "layer")
		if err := os.WriteFile(layer, []byte(image["blobs/sha256/"+strings.TrimPrefix(manifest.Layers[0].Digest, "sha256:")]), 0o600); err != nil {
			t.Fatal(err)
		}
		command(t, root, "tar", "-xzpf", layer)
		i.tryIn(t, root, "/usr/bin/stet", nobody)
		return
	}
	t.Error("the image has no layer")
}
