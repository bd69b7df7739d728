package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/internal/settings"
	"github.com/stet-dev/stet/internal/testenv"
)

// files returns the content of the files in a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range list {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

func TestApplyAndRevert(t *testing.T) {
	for name, src := range kinds {
		for _, exists := range []bool{true, false} {
			if !exists && src != "" {
				continue
			}
			dir := t.TempDir()
			change := foreign.Change{Path: filepath.Join(dir, "settings.json"), Hooks: entries("/bin/stet")}
			if exists {
				if err := os.WriteFile(change.Path, []byte(src), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			r, err := settings.Apply(change)
			if err != nil || !r.Changed() || exists != (r.Backup == change.Path+".stet-1") {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
			if ok, err := settings.Applied(change); !ok || err != nil {
				t.Errorf("%s: not applied: %v", name, err)
			}
			if info, err := os.Stat(change.Path); err != nil || exists && info.Mode().Perm() != 0o640 {
				t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
			}
			if r, err = settings.Apply(change); err != nil || r.Changed() {
				t.Errorf("%s: the second time: %+v, %v", name, r, err)
			}
			if r, err = settings.Revert(change); err != nil || !r.Changed() {
				t.Errorf("%s: revert: %+v, %v", name, r, err)
			}
			got := files(t, dir)
			if content, ok := got["settings.json"]; ok != exists || content != src || exists && len(got) != 1 || !exists && len(got) != 0 {
				t.Errorf("%s: afterwards there are %q", name, got)
			}
			if r, err := settings.Revert(change); err != nil || r.Changed() {
				t.Errorf("%s: revert again: %+v, %v", name, r, err)
			}
		}
	}
}

func TestFilesThatAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target.json")
	put := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("target.json", "{}", 0o600)
	link := filepath.Join(dir, "link.json")
	testenv.SkipWithout(t, "a file system with links", os.Symlink(target, link))
	paths := []string{link, put("broken.json", "{", 0o600), put("readonly.json", "{}", 0o400)}
	if os.Geteuid() == 0 {
		other := put("other.json", "{}", 0o600)
		if err := os.Chown(other, 12345, 12345); err == nil {
			paths = append(paths, other)
		}
	}
	before := files(t, dir)
	for _, path := range paths {
		change := foreign.Change{Path: path, Hooks: entries("/bin/stet")}
		if _, err := settings.Apply(change); !errors.Is(err, foreign.ErrSettings) {
			t.Errorf("%s: %v", path, err)
		}
	}
	after := files(t, dir)
	for name, content := range before {
		if after[name] != content || len(after) != len(before) {
			t.Errorf("%s changed to %q", name, after[name])
		}
	}
}

func TestWholeFiles(t *testing.T) {
	dir := t.TempDir()
	change := foreign.Change{Path: filepath.Join(dir, "plugin", "stet.js"), Content: []byte("// stet\nnew\n")}
	if err := os.MkdirAll(filepath.Dir(change.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		have string
		ok   bool
	}{{"", true}, {"// stet\nold\n", true}, {"// theirs\n", false}} {
		os.Remove(change.Path)
		if c.have != "" {
			if err := os.WriteFile(change.Path, []byte(c.have), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := settings.Apply(change); (err == nil) != c.ok {
			t.Errorf("over %q: %v", c.have, err)
		}
		if _, err := settings.Revert(change); err != nil {
			t.Errorf("over %q: %v", c.have, err)
		}
		data, err := os.ReadFile(change.Path)
		if c.ok != errors.Is(err, os.ErrNotExist) || !c.ok && string(data) != c.have {
			t.Errorf("after %q there is %q, %v", c.have, data, err)
		}
	}
}

func TestEarlierBackupsStay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "settings.json")
	for _, content := range []string{`{"a":1}`, `{"a":2}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := settings.Apply(foreign.Change{Path: path, Hooks: entries("/bin/stet")}); err != nil {
			t.Fatal(err)
		}
	}
	got := files(t, dir)
	if got["settings.json.stet-1"] != `{"a":1}` || got["settings.json.stet-2"] != `{"a":2}` || !strings.Contains(got["settings.json"], "stet hook") && !strings.Contains(got["settings.json"], "hook x") {
		t.Errorf("got %q", got)
	}
}
