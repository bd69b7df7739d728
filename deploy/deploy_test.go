// Package deploy_test holds the deployment files and the operations guide to the
// program: what they say is parsed, and every verb, flag, variable, metric and file
// that they name must exist. It needs no container engine and no cluster.
package deploy_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const guide = "../docs/OPERATIONS.md"

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// documents parses a YAML file of one or more documents.
func documents(t *testing.T, name, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var doc map[string]any
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if doc != nil {
			all = append(all, doc)
		}
	}
}

// at follows names and positions into a parsed document; nil where they lead nowhere.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := value.(map[string]any)
			value = m[step]
		case int:
			l, _ := value.([]any)
			if step >= len(l) {
				return nil
			}
			value = l[step]
		}
	}
	return value
}

func words(value any) []string {
	var out []string
	list, _ := value.([]any)
	for _, v := range list {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// instruction is a line of a Dockerfile.
type instruction struct{ name, rest string }

func dockerfile(t *testing.T, path string) []instruction {
	t.Helper()
	var out []instruction
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(read(t, path), "")
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out = append(out, instruction{name, strings.TrimSpace(rest)})
		}
	}
	return out
}

// TestImagesAreBuiltOfWhatIsThere: sources that are copied exist, binaries are static,
// the last stage is empty but for them, and nothing runs as root.
func TestImagesAreBuiltOfWhatIsThere(t *testing.T) {
	for file, context := range map[string]string{"Dockerfile": "..", "bucket.Dockerfile": "."} {
		var last, user, builds string
		for _, in := range dockerfile(t, file) {
			switch in.name {
			case "FROM":
				last, user = in.rest, ""
			case "USER":
				user = in.rest
			case "RUN":
				if strings.Contains(in.rest, "go build") || strings.Contains(in.rest, "go install") {
					builds = in.rest
				}
				if script := "internal/tools/build.sh"; strings.Contains(in.rest, script) {
					builds = read(t, filepath.Join("..", script))
				}
			case "COPY":
				checkCopy(t, file, context, in.rest)
			}
		}
		if last != "scratch" {
			t.Errorf("%s: the last stage is from %q, want scratch", file, last)
		}
		if !strings.Contains(builds, "CGO_ENABLED=0") {
			t.Errorf("%s: the binary is not static: %q", file, builds)
		}
		if user == "" || strings.HasPrefix(user, "0") || strings.HasPrefix(user, "root") {
			t.Errorf("%s: runs as %q", file, user)
		}
	}
	if build := read(t, "Dockerfile"); !strings.Contains(build, "FROM golang:"+goVersion(t)) {
		t.Errorf("Dockerfile does not build with Go %s, which go.mod asks for", goVersion(t))
	}
}

func checkCopy(t *testing.T, file, context, rest string) {
	t.Helper()
	fields := strings.Fields(rest)
	for _, f := range fields[:len(fields)-1] {
		if strings.HasPrefix(f, "--from=") {
			return // out of another stage
		}
		if strings.HasPrefix(f, "--") {
			continue
		}
		if _, err := os.Stat(filepath.Join(context, f)); err != nil {
			t.Errorf("%s copies %s: %v", file, f, err)
		}
	}
}

func goVersion(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	if found == nil {
		t.Fatal("go.mod names no version of Go")
	}
	return found[1]
}

// TestImagesNameNoHosts: images are built here or have short names.
func TestImagesNameNoHosts(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9-]+(:[a-z0-9.-]+)?$`)
	var images []string
	for _, file := range []string{"Dockerfile", "bucket.Dockerfile"} {
		for _, in := range dockerfile(t, file) {
			if in.name == "FROM" {
				images = append(images, strings.Fields(in.rest)[0])
			}
		}
	}
	services, _ := at(documents(t, "compose.yaml", read(t, "compose.yaml"))[0], "services").(map[string]any)
	for _, service := range services {
		image, _ := at(service, "image").(string)
		images = append(images, image)
	}
	for _, c := range containers(t, render(t, nil)) {
		image, _ := at(c, "image").(string)
		images = append(images, image)
	}
	if len(images) < 10 {
		t.Errorf("found %d images only: %q", len(images), images)
	}
	for _, image := range images {
		if !name.MatchString(image) {
			t.Errorf("image %q", image)
		}
	}
}

// TestUnitsAreValid asks systemd, with a program that exists in the place of ours.
func TestUnitsAreValid(t *testing.T) {
	units, err := filepath.Glob("systemd/*.[st][ei][rm]*")
	if err != nil || len(units) != 3 {
		t.Fatalf("got %q, %v, want three units", units, err)
	}
	dir := t.TempDir()
	for i, unit := range units {
		text := regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAllString(read(t, unit), "ExecStart=/bin/true")
		units[i] = filepath.Join(dir, filepath.Base(unit))
		if err := os.WriteFile(units[i], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
			if line != "" && !strings.HasPrefix(line, "#") && !regexp.MustCompile(`^(\[[A-Z][a-z]+\]|[A-Z][A-Za-z]+=.*)$`).MatchString(line) {
				t.Errorf("%s: %q is neither a section nor an assignment", unit, line)
			}
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // not a system with systemd; the lines above were looked at
	}
	out, err := exec.Command(analyze, append([]string{"verify"}, units...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestDashboardIsValid: it parses, its panels have numbers of their own and do not
// cover each other.
func TestDashboardIsValid(t *testing.T) {
	var board struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/stet.json")), &board); err != nil {
		t.Fatal(err)
	}
	if board.Title == "" || len(board.Panels) < 10 {
		t.Fatalf("got title %q and %d panels", board.Title, len(board.Panels))
	}
	numbers, cells := make(map[int]bool), make(map[[2]int]string)
	for _, p := range board.Panels {
		if numbers[p.ID] {
			t.Errorf("panel %q has the number %d of another", p.Title, p.ID)
		}
		numbers[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q, or beyond the edge", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
}
