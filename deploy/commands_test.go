package deploy_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/cli"
)

// verbs knows the command line by its help.
type verbs struct{ pages map[string]string }

// help returns the help of a verb, or "" where there is none.
func (v *verbs) help(t *testing.T, path ...string) string {
	t.Helper()
	key := strings.Join(append([]string{"stet"}, path...), " ")
	if page, ok := v.pages[key]; ok {
		return page
	}
	var out, errs bytes.Buffer
	if code := cli.Main(append(slices.Clone(path), "--help"), strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("%s --help: code %d: %s", key, code, &errs)
	}
	page := out.String()
	// An unknown verb gets the help of the one above it.
	if !regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(key) + `( |$)`).MatchString(page) {
		page = ""
	}
	if v.pages == nil {
		v.pages = make(map[string]string)
	}
	v.pages[key] = page
	return page
}

var flagInHelp = regexp.MustCompile(`(?m)^ +(-\w)?(?:, | +)--([a-z-]+)`)

// mistakes looks at the arguments of stet: they lead to a verb, which has all the
// flags.
func (v *verbs) mistakes(t *testing.T, args []string) []string {
	t.Helper()
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	var path, flags []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			name, _, _ := strings.Cut(arg, "=")
			flags = append(flags, name)
		} else if !strings.ContainsAny(arg, "/:.$") && v.help(t, append(slices.Clone(path), arg)...) != "" {
			path = append(path, arg) // not the value of a flag before it
		}
	}
	page := v.help(t, path...)
	if len(path) == 0 || strings.Contains(page, "Available Commands:") {
		return []string{"'stet " + strings.Join(args, " ") + "' names no verb"}
	}
	var known, out []string
	for _, found := range flagInHelp.FindAllStringSubmatch(page, -1) {
		known = append(known, found[1], "--"+found[2])
	}
	for _, flag := range flags {
		if !slices.Contains(known, flag) {
			out = append(out, "stet "+strings.Join(path, " ")+" has no flag "+flag)
		}
	}
	return out
}

// shellWord is what lies between white space outside of quotes, or within them.
var shellWord = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)

// commandsIn finds the calls of stet in a line of shell.
func commandsIn(line string) [][]string {
	all := shellWord.FindAllString(strings.ReplaceAll(line, ";", " ; "), -1)
	var out [][]string
	for i, word := range all {
		if strings.Trim(word, "`") != "stet" && !strings.HasSuffix(word, "/bin/stet") {
			continue
		}
		args := all[i+1:]
		if end := slices.IndexFunc(args, func(w string) bool { return strings.ContainsAny(w[:1], "|&;>#") }); end >= 0 {
			args = args[:end]
		}
		if len(args) > 0 {
			out = append(out, strings.Fields(strings.ReplaceAll(strings.Join(args, " "), "`", "")))
		}
	}
	return out
}

// shellLines returns the lines of the guide's blocks of commands, which begin with $.
func shellLines(text string) []string {
	var out []string
	for i, block := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n```") {
		if i%2 == 0 {
			continue // between blocks
		}
		for line := range strings.SplitSeq(block, "\n") {
			if rest, ok := strings.CutPrefix(line, "$ "); ok {
				out = append(out, rest)
			}
		}
	}
	return out
}

func TestEveryCommandExists(t *testing.T) {
	v := &verbs{}
	found := 0
	check := func(where string, args []string) {
		found++
		for _, mistake := range v.mistakes(t, args) {
			t.Errorf("%s: %s", where, mistake)
		}
	}
	lines := func(where string, all []string) {
		before := found
		for _, line := range all {
			for _, args := range commandsIn(line) {
				check(where, args)
			}
		}
		if found == before {
			t.Errorf("%s: found no command", where)
		}
	}
	lines(guide, shellLines(read(t, guide)))
	lines(guide, regexp.MustCompile("`stet [^`]+`").FindAllString(read(t, guide), -1))
	lines("NOTES.txt", regexp.MustCompile(`(?m)^  .*`).FindAllString(read(t, "helm/stet/templates/NOTES.txt"), -1))
	lines("stet-house.sh", strings.Split(read(t, "systemd/stet-house.sh"), "\n"))
	unit := strings.ReplaceAll(read(t, "systemd/stet.service"), "\\\n", " ")
	lines("stet.service", regexp.MustCompile(`(?m)^ExecStart=(.*)`).FindStringSubmatch(unit)[1:])
	for _, in := range dockerfile(t, "Dockerfile") {
		if in.name == "CMD" {
			var args []string
			if err := json.Unmarshal([]byte(in.rest), &args); err != nil {
				t.Errorf("Dockerfile: CMD %s: %v", in.rest, err)
			}
			check("Dockerfile", args)
		}
	}
	services, _ := at(documents(t, "compose.yaml", read(t, "compose.yaml"))[0], "services").(map[string]any)
	for name, service := range services {
		if command := words(at(service, "command")); at(service, "image") == "stet:local" && command != nil {
			check("compose.yaml: "+name, command)
		}
	}
	lines("compose.yaml", []string{strings.ReplaceAll(composeExample(t), "admin ", "stet ")})
	for _, c := range containers(t, render(t, nil)) {
		check("chart", words(at(c, "args")))
	}
	if found < 50 {
		t.Errorf("found %d commands only", found)
	}
}

// composeExample is the line of the file's comment that runs a verb.
func composeExample(t *testing.T) string {
	t.Helper()
	s := bufio.NewScanner(strings.NewReader(read(t, "compose.yaml")))
	for s.Scan() {
		if strings.Contains(s.Text(), "run --rm admin tokens") {
			return s.Text()
		}
	}
	t.Fatal("the example is gone")
	return ""
}

// TestMistakesAreFound: a check that finds nothing would pass, too.
func TestMistakesAreFound(t *testing.T) {
	v := &verbs{}
	for line, want := range map[string]int{
		"stet frobnicate": 1, "stet serve --frobnicate": 1, "stet tokens": 1, "stet --mode server gc": 1, "stet tokens make shop": 1,
		"stet serve --mode=server -x": 1, "stet --store /srv/stet tokens create shop --scope write": 0, "stet run -q -- gcc --version": 0,
	} {
		for _, args := range commandsIn(line) {
			if got := v.mistakes(t, args); len(got) != want {
				t.Errorf("%q: got %q, want %d mistakes", line, got, want)
			}
		}
	}
	got := commandsIn("PGPASSFILE=x /usr/bin/stet --json du | jq . && stet gc")
	if len(got) != 2 || strings.Join(got[0], " ") != "--json du" || strings.Join(got[1], " ") != "gc" {
		t.Errorf("got %q", got)
	}
}

// TestEveryVariableExists: what is called STET_… in the files is a setting, or is
// read by the command line.
func TestEveryVariableExists(t *testing.T) {
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"config", "explain", "--json"}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("config explain: %s", &errs)
	}
	known := make(map[string]bool)
	for d := json.NewDecoder(&out); d.More(); {
		var s struct{ Env string }
		if err := d.Decode(&s); err != nil {
			t.Fatal(err)
		}
		known[s.Env] = true
	}
	sources, err := filepath.Glob("../internal/cli/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		for _, found := range regexp.MustCompile(`"(STET_\w+)"`).FindAllStringSubmatch(read(t, source), -1) {
			known[found[1]] = true
		}
	}
	err = filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".go") {
			return err
		}
		checkVariables(t, path, known)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkVariables(t, guide, known)
}

func checkVariables(t *testing.T, path string, known map[string]bool) {
	t.Helper()
	for _, name := range regexp.MustCompile(`STET_[A-Z_]*[A-Z]`).FindAllString(read(t, path), -1) {
		if !known[name] {
			t.Errorf("%s: nothing reads %s", path, name)
		}
	}
}
