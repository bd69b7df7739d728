package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestRecipesNameTheArchives: Homebrew, Scoop and npm find every archive or package that
// they can use, by its name and its checksum.
func TestRecipesNameTheArchives(t *testing.T) {
	files := made(t, fake(t))
	const at = "https://github.com/stet-dev/stet/releases/download/v0.1.0/"
	for _, system := range []string{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"} {
		name := "stet_0.1.0_" + system + ".tar.gz"
		if want := at + name + "\"\n      sha256 \"" + digest([]byte(files[name])) + "\"\n"; !strings.Contains(files["stet.rb"], want) {
			t.Errorf("the formula lacks %s:\n%s", want, files["stet.rb"])
		}
	}
	var scoop struct {
		Version      string
		Architecture map[string]struct {
			URL, Hash  string
			ExtractDir string `json:"extract_dir"`
		}
		Bin []string
	}
	if err := json.Unmarshal([]byte(files["stet.json"]), &scoop); err != nil {
		t.Fatal(err)
	}
	for processor, system := range map[string]string{"64bit": "windows_amd64", "arm64": "windows_arm64"} {
		name := "stet_0.1.0_" + system + ".zip"
		if got := scoop.Architecture[processor]; got.URL != at+name || got.Hash != digest([]byte(files[name])) || got.ExtractDir != "stet_0.1.0" {
			t.Errorf("Scoop gets %+v for %s", got, processor)
		}
	}
	if scoop.Version != "0.1.0" || !slices.Equal(scoop.Bin, []string{"stet.exe", "stet-hook.exe"}) {
		t.Errorf("Scoop gets %+v", scoop)
	}
	var launcher struct{ OptionalDependencies map[string]string }
	if err := json.Unmarshal([]byte(untar(t, files["npm-stet-0.1.0.tgz"])["package/package.json"]), &launcher); err != nil {
		t.Fatal(err)
	}
	for name, version := range launcher.OptionalDependencies {
		file := "npm-" + strings.TrimPrefix(name, "@stet-dev/") + "-" + version + ".tgz"
		var about struct{ Name, Version string }
		if err := json.Unmarshal([]byte(untar(t, files[file])["package/package.json"]), &about); err != nil || about.Name != name || about.Version != "0.1.0" {
			t.Errorf("%s has %+v, %v", file, about, err)
		}
	}
	if len(launcher.OptionalDependencies) != 8 {
		t.Errorf("npm gets %v", launcher.OptionalDependencies)
	}
}
