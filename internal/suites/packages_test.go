package suites

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// manifest is what the tests read of a package.json.
type manifest struct {
	dir              string
	Name             string            `json:"name"`
	Version          string            `json:"version"`
	Private          bool              `json:"private"`
	License          string            `json:"license"`
	Description      string            `json:"description"`
	Type             string            `json:"type"`
	Engines          map[string]string `json:"engines"`
	Files            []string          `json:"files"`
	Exports          map[string]any    `json:"exports"`
	Scripts          map[string]string `json:"scripts"`
	Dependencies     map[string]string `json:"dependencies"`
	PeerDependencies map[string]string `json:"peerDependencies"`
	DevDependencies  map[string]string `json:"devDependencies"`
}

// packages are the directories of clients/ that npm publishes.
var packages = []string{
	"typescript",
	"langgraph",
	"claude-agent-sdk",
	"cursor-sdk",
	"openai-agents",
}

// downloaded reports whether setup brought the modules of a package: some are for make
// test-suites only.
func (m manifest) downloaded() bool {
	late := m.Name == "@stet-dev/cursor-sdk" || m.Name == "@stet-dev/openai-agents"
	return !late || whole() && testenv.LeftOut("frameworks") == ""
}

// manifests returns what the packages say about themselves.
func manifests(t *testing.T) []manifest {
	t.Helper()
	all := make([]manifest, len(packages))
	for i, name := range packages {
		path := "../../clients/" + name + "/package.json"
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &all[i])
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if bytes.Contains(data, []byte("://")) {
			t.Errorf("%s names a host", path)
		}
		all[i].dir = filepath.Dir(path)
	}
	return all
}

// What a registry and its users need is there, and versions go together.
func TestPackagesCanBePublished(t *testing.T) {
	release := strings.TrimSpace(read(t, "../../VERSION"))
	for _, file := range []string{"pyproject.toml", "stet/__init__.py"} {
		if !regexp.MustCompile(`(?m)^(__)?version(__)? = "` + regexp.QuoteMeta(release) + `"$`).MatchString(read(t, "../../clients/python/"+file)) {
			t.Errorf("clients/python/%s does not have version %s as the file VERSION", file, release)
		}
	}
	for _, m := range manifests(t) {
		for _, wrong := range []struct {
			what string
			is   bool
		}{
			{"is private", m.Private},
			{"has another name", !strings.HasPrefix(m.Name, "@stet-dev/")},
			{"has version " + m.Version + ", not " + release + " as the file VERSION", m.Version != release},
			{"needs another version of the client", m.Name != "@stet-dev/client" && m.Dependencies["@stet-dev/client"]+m.PeerDependencies["@stet-dev/client"] != release},
			{"has another license", m.License != "Apache-2.0" || read(t, m.dir+"/LICENSE") != read(t, "../../LICENSE")},
			{"has no description", m.Description == ""},
			{"is not made of modules", m.Type != "module"},
			{"does not say which Node it needs", m.Engines["node"] == ""},
			{"has sources or tests in it", !slices.Equal(m.Files, []string{"dist/src"})},
			{"has no types", !strings.HasSuffix(entry(m, "types"), ".d.ts")},
			{"does not build what it packs", !strings.Contains(m.Scripts["prepack"], "npm run build")},
			{"has no example in its README", !strings.Contains(read(t, m.dir+"/README.md"), "examples/quickstart.ts")},
		} {
			if wrong.is {
				t.Errorf("%s %s", m.dir, wrong.what)
			}
		}
		if lines := strings.Count(read(t, m.dir+"/README.md"), "\n"); lines > 60 {
			t.Errorf("the README of %s has %d lines, more than a screen", m.dir, lines)
		}
	}
}

// entry returns a file of the main export.
func entry(m manifest, kind string) string {
	main, _ := m.Exports["."].(map[string]any)
	file, _ := main[kind].(string)
	return file
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var imported = regexp.MustCompile(`(?m)(?:from|import) ?\(?"((?:@[^/"]+/)?[^./"@][^/"]*)`)

// What the code of a package imports is what its package.json names.
func (m manifest) checkImports(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(m.dir + "/dist/src/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s was not built: %v", m.dir, err)
	}
	for _, file := range files {
		for _, found := range imported.FindAllStringSubmatch(read(t, file), -1) {
			name := found[1]
			if m.Dependencies[name]+m.PeerDependencies[name] == "" && name != m.Name && !strings.HasPrefix(name, "node:") {
				t.Errorf("%s imports %s, which package.json does not name", file, name)
			}
		}
	}
}

// Every package is packed and installed, with what it needs, into an empty project. Its
// quick start is compiled there and calls a server.
func TestPackagesAreInstalledAndUsed(t *testing.T) {
	if !whole() {
		testenv.OnlyFull(t)
	}
	testenv.Need(t, "node", "suites")
	all := slices.DeleteFunc(manifests(t), func(m manifest) bool { return !m.downloaded() })
	at := suite{dir: "../../clients/typescript"}.embedded(t)
	tarballs, project := t.TempDir(), t.TempDir()
	shelf := &registry{packed: map[string]string{}}
	wanted := map[string]bool{"@types/node@" + all[0].DevDependencies["@types/node"]: true}
	pack := []string{"pack", "--ignore-scripts", "--pack-destination", tarballs}
	for _, m := range all {
		suite{dir: m.dir}.install(t)
		build(t, m.dir)
		m.checkImports(t)
		pack = append(pack, m.dir)
		shelf.packed[m.Name] = filepath.Join(tarballs, strings.NewReplacer("@", "", "/", "-").Replace(m.Name)+"-"+m.Version+".tgz")
		wanted[m.Name+"@"+m.Version] = true
		for name := range m.PeerDependencies {
			if version := m.DevDependencies[name]; version != "" {
				wanted[name+"@"+version] = true
			}
		}
	}
	npm(t, ".", tarballs, pack...)
	srv := httptest.NewServer(shelf)
	t.Cleanup(srv.Close)
	shelf.address = srv.URL
	write(t, project+"/package.json", `{"private": true, "type": "module"}`)
	npm(t, project, tarballs, append([]string{"install", "--registry", srv.URL, "--legacy-peer-deps", "--ignore-scripts"}, slices.Sorted(maps.Keys(wanted))...)...)

	programs := make(map[string]string)
	for _, m := range all {
		name := filepath.Base(m.dir)
		programs[m.Name] = name + ".js"
		source, err := os.ReadFile(m.dir + "/examples/quickstart.ts")
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(project, name+".ts"), string(source))
	}
	write(t, project+"/tsconfig.json", `{"compilerOptions": {"target": "es2022", "module": "nodenext", "strict": true, "skipLibCheck": true,
		"noUncheckedIndexedAccess": true, "types": ["node"]}, "include": ["*.ts"]}`)
	tsc, err := filepath.Abs("../../clients/typescript/node_modules/typescript/bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	command(t, project, nil, "node", tsc, "-p", ".")
	for name, program := range programs {
		if out := command(t, project, []string{"STET_URL=" + at.address, "STET_TOKEN=" + at.token}, node(t), program); len(bytes.TrimSpace(out)) == 0 {
			t.Errorf("the quick start of %s prints nothing", name)
		}
	}
}

// npm runs npm without the settings and the cache of this user.
func npm(t *testing.T, dir, scratch string, args ...string) {
	t.Helper()
	command(t, dir, []string{"npm_config_cache=" + filepath.Join(scratch, "cache"), "npm_config_userconfig=" + os.DevNull, "npm_config_audit=false",
		"npm_config_fund=false", "npm_config_update_notifier=false", "npm_config_loglevel=error"}, "npm", args...)
}

func command(t *testing.T, dir string, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q in %s: %v\n%s", name, args, dir, err, out)
	}
	return out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
