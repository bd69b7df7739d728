package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// installer is what people run with a shell.
//
//go:embed install.sh
var installer string

// recipes are for package managers that take the archives: Homebrew and Scoop, and the
// script for everybody else.
func (r *release) recipes(context.Context) error {
	if err := r.write("install.sh", []byte(strings.ReplaceAll(installer, "@VERSION@", r.version))); err != nil {
		return err
	}
	formula, err := r.formula()
	if err != nil {
		return err
	}
	if err := r.write("stet.rb", []byte(formula)); err != nil {
		return err
	}
	windows := r.targetsOf("windows")
	if len(windows) == 0 {
		return nil
	}
	manifest, err := r.manifest(windows)
	if err != nil {
		return err
	}
	return r.write("stet.json", manifest)
}

// address is where the archive of a target will be, and its checksum.
func (r *release) address(t target) (url, sum string, err error) {
	name := r.archiveName(t)
	data, err := os.ReadFile(filepath.Join(r.out, name))
	return homepage + "/releases/download/" + r.version + "/" + name, digest(data), err
}

// formula is the recipe for Homebrew, which runs on macOS and Linux.
func (r *release) formula() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "class Stet < Formula\n  desc \"%s\"\n  homepage \"%s\"\n  version \"%s\"\n  license \"%s\"\n", summary, homepage, r.number(), licence)
	for _, system := range []struct{ go_, brew string }{{"darwin", "macos"}, {"linux", "linux"}} {
		targets := r.targetsOf(system.go_)
		if len(targets) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n  on_%s do\n", system.brew)
		for _, t := range targets {
			url, sum, err := r.address(t)
			if err != nil {
				return "", err
			}
			processor := map[string]string{"amd64": "intel", "arm64": "arm"}[t.arch]
			fmt.Fprintf(&b, "    on_%s do\n      url \"%s\"\n      sha256 \"%s\"\n    end\n", processor, url, sum)
		}
		b.WriteString("  end\n")
	}
	b.WriteString(`
  def install
    bin.install "stet", "stet-hook"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/stet.bash" => "stet"
    zsh_completion.install "completions/_stet"
    fish_completion.install "completions/stet.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/stet version")
    system bin/"stet", "demo", testpath/"shop"
  end
end
`)
	return b.String(), nil
}

// manifest is the recipe for Scoop.
func (r *release) manifest(targets []target) ([]byte, error) {
	architectures := make(map[string]any)
	for _, t := range targets {
		url, sum, err := r.address(t)
		if err != nil {
			return nil, err
		}
		name := map[string]string{"amd64": "64bit", "arm64": "arm64"}[t.arch]
		architectures[name] = map[string]string{"url": url, "hash": sum, "extract_dir": "stet_" + r.number()}
	}
	data, err := json.MarshalIndent(map[string]any{
		"version": r.number(), "description": summary, "homepage": homepage, "license": licence,
		"architecture": architectures, "bin": []string{"stet.exe", "stet-hook.exe"},
	}, "", "  ")
	return append(data, '\n'), err
}

// sums writes the checksums of everything, in the form of sha256sum, and signs them.
func (r *release) sums(context.Context) error {
	found, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines []string
	for _, f := range found {
		data, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, digest(data)+"  "+f.Name()+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	text := []byte(strings.Join(lines, ""))
	if err := r.write("SHA256SUMS", text); err != nil || r.key == nil {
		return err
	}
	if err := r.write("stet.pub", []byte(r.key.Public())); err != nil {
		return err
	}
	return r.write("SHA256SUMS.minisig", []byte(r.key.Sign(text, "stet "+r.version)))
}
