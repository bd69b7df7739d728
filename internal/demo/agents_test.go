package demo

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet/foreign"
)

// tools are the names of the tools that the agents have in their records.
var tools = map[string][]string{
	"claude-code": {"Bash", "Edit", "Write"},
	"codex":       {"apply_patch", "exec_command", "spawn_agent"},
	"opencode":    {"bash", "edit", "write"},
}

// forms are those of the ids of sessions, turns and calls.
var forms = map[string][3]string{
	"claude-code": {`^[0-9a-f-]{36}$`, `^[0-9a-f-]{36}$`, `^toolu_01\w{22}$`},
	"codex":       {`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}$`, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}$`, `^call_\w{22}$`},
	"opencode":    {`^ses_[0-9a-f]{12}ffe\w{14}$`, `^msg_[0-9a-f]{12}\w{14}$`, `^call_\w{22}$`},
}

// Each story can be the record of its agent: its tools exist, and what they say they do to
// files is what happens to the files.
func TestStoriesCanBeTrue(t *testing.T) {
	for name, s := range library() {
		l := dialects[s.Agent]
		if l == nil {
			if name != "live" {
				t.Errorf("%s: no dialect of %s", name, s.Agent)
			}
			continue
		}
		match := func(i int, id string) {
			t.Helper()
			if !regexp.MustCompile(forms[s.Agent][i]).MatchString(id) {
				t.Errorf("%s: %q is not an id of %s", name, id, s.Agent)
			}
		}
		match(0, l.session())
		after := []map[string]string{maps.Clone(s.start)} // the files after each turn
		last := after[0]
		for i, sc := range s.scenes {
			files := maps.Clone(last)
			maps.Copy(files, sc.yours)
			match(1, sc.message)
			turn := l.turn(sc, "/w", files, time.Unix(0, 0), time.Unix(60, 0))
			for _, step := range turn.Steps {
				if step.Call != nil {
					match(2, step.Call.ID)
					if !slices.Contains(tools[s.Agent], step.Call.Name) {
						t.Errorf("%s, scene %d: %s has no tool %s", name, i+1, s.Agent, step.Call.Name)
					}
					perform(t, files, step.Call)
				}
			}
			for path, text := range sc.files {
				if files[path] != text {
					t.Errorf("%s, scene %d: the tools leave %s as\n%s", name, i+1, path, files[path])
				}
			}
			after, last = append(after, files), files
			if sc.back > 0 {
				last = after[sc.back]
			}
		}
	}
}

// perform does to files what a call says.
func perform(t *testing.T, files map[string]string, c *foreign.Call) {
	t.Helper()
	var in struct {
		Path    string `json:"file_path"`
		Content string `json:"content"`
		Old     string `json:"old_string"`
		New     string `json:"new_string"`
		OPath   string `json:"filePath"`
		OOld    string `json:"oldString"`
		ONew    string `json:"newString"`
	}
	if c.Name == "apply_patch" {
		var patch string
		if err := json.Unmarshal(c.Input, &patch); err != nil {
			t.Fatal(err)
		}
		applyPatch(t, files, patch)
		return
	}
	if rm, ok := strings.CutPrefix(c.Command, "rm "); ok {
		for path := range strings.FieldsSeq(rm) {
			delete(files, path)
		}
	}
	if c.Tool != foreign.EditTool {
		return
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(in.Path+in.OPath, "/w/")
	if in.Content != "" {
		files[path] = in.Content
		return
	}
	replace(t, files, path, in.Old+in.OOld, in.New+in.ONew)
}

func replace(t *testing.T, files map[string]string, path, old, now string) {
	t.Helper()
	if n := strings.Count(files[path], old); old == "" || n != 1 {
		t.Errorf("%s has %d times\n%s", path, n, old)
	}
	files[path] = strings.Replace(files[path], old, now, 1)
}

func applyPatch(t *testing.T, files map[string]string, patch string) {
	t.Helper()
	body, ok := strings.CutPrefix(patch, "*** Begin Patch\n")
	body, end := strings.CutSuffix(body, "*** End Patch\n")
	if !ok || !end {
		t.Fatalf("not a patch:\n%s", patch)
	}
	for _, part := range strings.Split(body, "*** ")[1:] {
		head, lines, _ := strings.Cut(part, "\n")
		what, path, _ := strings.Cut(head, " File: ")
		sides := map[byte]string{}
		for line := range strings.Lines(lines) {
			sides[line[0]] += line[1:]
		}
		switch what {
		case "Add":
			files[path] = sides['+']
		case "Update":
			replace(t, files, path, sides['-'], sides['+'])
		case "Delete":
			delete(files, path)
		default:
			t.Errorf("%q", head)
		}
	}
}
