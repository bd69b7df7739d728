package scenario

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

var updateAPI = flag.Bool("update-api", false, "write the answers of docs/API.md")

const (
	// apiServer is where the page says that the server is.
	apiServer = "http://127.0.0.1:7717"
	// apiHome is the home on the page.
	apiHome = "/home/me"
	// apiEnd follows what a command prints, with its exit code.
	apiEnd = "\x1e"
)

// TestAPIPage runs the commands of the console blocks of docs/API.md in one shell, against
// a server with a new store, and compares what they print. With -update-api it writes the
// page instead. Lines that begin with "> " continue a command.
func TestAPIPage(t *testing.T) {
	testenv.Need(t, "curl")
	const path = "../../docs/API.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := readAPIPage(string(text))
	if len(page.commands) < 50 {
		t.Fatalf("only %d commands were found", len(page.commands))
	}
	got := runAPIPage(t, page.commands)
	if *updateAPI {
		if err := os.WriteFile(path, []byte(page.with(got)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for i, c := range page.commands {
		if masked(got[i]) != masked(c.prints) {
			t.Errorf("docs/API.md: $ %s\ngot:\n%s\nthe page has:\n%s\n(go test ./internal/scenario -run TestAPIPage -update-api writes it)", c.text, got[i], c.prints)
		}
	}
}

// apiCommand is a command of the page and what the page says that it prints.
type apiCommand struct{ text, prints string }

// apiPage is a page in pieces: each command follows the text at the same place, and the
// last text ends the page.
type apiPage struct {
	texts    []string
	commands []apiCommand
}

func readAPIPage(page string) *apiPage {
	out := &apiPage{texts: []string{""}}
	inside := false
	for line := range strings.Lines(page) {
		last := len(out.commands) - 1
		switch {
		case inside && strings.HasPrefix(line, "$ "):
			out.commands = append(out.commands, apiCommand{text: line[2:]})
			out.texts = append(out.texts, "")
			continue
		case inside && line != "```\n" && strings.HasPrefix(line, "> ") && out.commands[last].prints == "":
			out.commands[last].text += line[2:]
			continue
		case inside && line != "```\n":
			out.commands[last].prints += line
			continue
		}
		inside = line == "```console\n"
		out.texts[len(out.texts)-1] += line
	}
	return out
}

// with returns the page with what the commands printed.
func (p *apiPage) with(got []string) string {
	var out strings.Builder
	for i, text := range p.texts {
		out.WriteString(text)
		if i < len(p.commands) {
			lines := strings.Split(strings.TrimSuffix(p.commands[i].text, "\n"), "\n")
			out.WriteString("$ " + strings.Join(lines, "\n> ") + "\n" + got[i])
		}
	}
	return out.String()
}

// runAPIPage runs commands in one shell and returns what each of them prints, in a form
// that does not depend on the machine.
func runAPIPage(t *testing.T, commands []apiCommand) []string {
	t.Helper()
	host := newLaptop(t, "STET_STORE=", "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=")
	address, _ := host.serve("127.0.0.1:0")
	address = strings.TrimSuffix(address, "/")
	home := filepath.Join(host.dir, "home")
	var script strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&script, "%s\nprintf '%s%%d%s' $?\n", strings.TrimSuffix(strings.ReplaceAll(c.text, apiServer, address), "\n"), apiEnd, apiEnd)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script.String())
	cmd.Dir = filepath.Join(host.dir, "work")
	cmd.Env = append(os.Environ(), "HOME="+home, "LC_ALL=C")
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	text := strings.NewReplacer(address, apiServer, home, apiHome).Replace(string(printed))
	pieces := strings.Split(text, apiEnd)
	if len(pieces) != 2*len(commands)+1 {
		t.Fatalf("%d commands ended, want %d:\n%s", len(pieces)/2, len(commands), text)
	}
	got := make([]string, len(commands))
	for i, c := range commands {
		if code := pieces[2*i+1]; code != "0" {
			t.Errorf("docs/API.md: $ %s\nends with %s: %s", c.text, code, pieces[2*i])
		}
		got[i] = readable(pieces[2*i])
	}
	return got
}

// readable writes the lines that are JSON in one way. Servers vary the spaces in it on
// purpose.
func readable(printed string) string {
	var out strings.Builder
	for line := range strings.Lines(printed) {
		trimmed := strings.TrimSuffix(line, "\n")
		if !json.Valid([]byte(trimmed)) || !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
			out.WriteString(line)
			continue
		}
		out.WriteString(layOut(trimmed) + "\n")
	}
	return out.String()
}

// jsonToken is a string, a sign or anything else of a JSON text.
var jsonToken = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+`)

// layOut writes JSON with one space after each colon and comma, and in lines that fit on
// the page.
func layOut(text string) string {
	const width = 116
	var out, part strings.Builder
	length := 0
	flush := func() {
		if length > 0 && length+part.Len() > width {
			out.WriteString("\n  ")
			length = 2
		} else if length > 0 {
			out.WriteString(" ")
			length++
		}
		length += part.Len()
		out.WriteString(part.String())
		part.Reset()
	}
	for _, token := range jsonToken.FindAllString(text, -1) {
		part.WriteString(token)
		switch token {
		case ":":
			part.WriteString(" ")
		case ",":
			flush()
		}
	}
	flush()
	return out.String()
}

// apiVaries is what differs each time.
var apiVaries = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "TOKEN"},
	{regexp.MustCompile(`\b01[0-9A-Za-z]{24}\b`), "ID"},
	{regexp.MustCompile(`\b1[0-9]{12}\b`), "TIME"},
	{regexp.MustCompile(`\b([0-9]{16})-[0-9a-f]{1,16}\b`), "$1-HASH"},
	{regexp.MustCompile(`("version": |at version )"?[^ "]+"?`), "${1}VERSION"},
	{regexp.MustCompile(`\s+`), " "}, // lines break by the length of what varies
}

func masked(text string) string {
	for _, v := range apiVaries {
		text = v.pattern.ReplaceAllString(text, v.text)
	}
	return text
}
