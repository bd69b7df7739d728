package demo

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/foreign"
)

// dialect is how an agent names and writes what the stories need of its tools. The forms
// are those of its own records. Only Codex has a story with a subagent.
type dialect struct {
	session func() string // a new id of a session
	call    string        // what ids of calls begin with

	files func(dir string, changes []change) []foreign.Call
	shell func(command, output string, exit int) foreign.Call
	task  func(id, ask string) foreign.Call
}

// change is what an agent does to a file. before is nil for a new file, and after is empty
// for one that is removed.
type change struct {
	name   string
	before *string
	after  string
}

// dialects are those of the agents that stories have. Another agent works elsewhere, and
// stet itself keeps what it does.
var dialects = map[string]*dialect{
	"claude-code": {
		session: uuid.NewString, call: "toolu_01", files: claudeFiles, shell: claudeShell,
	},
	"opencode": {session: openCodeID, call: "call_", files: openCodeFiles, shell: openCodeShell},
	"codex": {
		session: func() string { return uuid.Must(uuid.NewV7()).String() }, call: "call_",
		files: codexFiles, shell: codexShell, task: codexTask,
	},
}

// turn returns a scene as the agent's record has it. old holds the previous content of the
// files.
func (l *dialect) turn(s scene, dir string, old map[string]string, began, ended time.Time) foreign.Turn {
	t := foreign.Turn{ID: s.message, Prompt: s.ask, Started: began, Ended: ended, Done: true}
	if s.think != "" {
		t.Steps = append(t.Steps, foreign.Step{Thinking: s.think})
	}
	var calls []foreign.Call
	if s.sub != nil {
		calls = append(calls, l.task(s.sub.id, s.sub.ask))
	}
	if s.fails != nil {
		calls = append(calls, l.shell(s.fails.command, s.fails.output, 1))
	}
	var changes []change
	for _, name := range sortedKeys(s.files) {
		c := change{name: name, after: s.files[name]}
		if text, ok := old[name]; ok {
			c.before = &text
		}
		changes = append(changes, c)
	}
	if len(changes) > 0 {
		calls = append(calls, l.files(dir, changes)...)
	}
	for _, r := range s.runs {
		calls = append(calls, l.shell(r.command, r.output, 0))
	}
	step := ended.Sub(began) / time.Duration(len(calls)+1)
	for i := range calls {
		c := &calls[i]
		c.ID, c.Answered = callID(l.call, s.message, i), true
		c.Started = began.Add(time.Duration(i) * step)
		c.Ended = c.Started.Add(step / 2)
		t.Steps = append(t.Steps, foreign.Step{Call: c, At: c.Started})
	}
	t.Steps = append(t.Steps, foreign.Step{Text: s.say, At: ended})
	return t
}

// callID returns the id of a call: letters and digits that do not change.
func callID(begin, message string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", message, n))
	return begin + base32.StdEncoding.EncodeToString(sum[:])[:22]
}

// arguments returns the JSON of arguments.
func arguments(fields map[string]any) json.RawMessage {
	data, err := json.Marshal(fields)
	if err != nil {
		panic(err) // they are texts
	}
	return data
}

// removal is the command that removes files, "" if none is removed.
func removal(changes []change) string {
	var names []string
	for _, c := range changes {
		if c.after == "" {
			names = append(names, c.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "rm " + strings.Join(names, " ")
}

func claudeFiles(dir string, changes []change) (calls []foreign.Call) {
	const note = " (file state is current in your context — no need to Read it back)"
	if rm := removal(changes); rm != "" {
		calls = append(calls, claudeShell(rm, "", 0))
	}
	for _, c := range changes {
		path := filepath.Join(dir, filepath.FromSlash(c.name))
		call := foreign.Call{Tool: foreign.EditTool, Paths: []string{path}}
		switch {
		case c.after == "":
			continue
		case c.before == nil:
			call.Name, call.Input = "Write", arguments(map[string]any{"file_path": path, "content": c.after})
			call.Output = "File created successfully at: " + path + note
		default:
			old, now := hunk(*c.before, c.after)
			call.Name, call.Input = "Edit", arguments(map[string]any{"file_path": path, "old_string": old, "new_string": now, "replace_all": false})
			call.Output = "The file " + path + " has been updated successfully." + note
		}
		calls = append(calls, call)
	}
	return calls
}

func claudeShell(command, output string, exit int) foreign.Call {
	c := shell("Bash", command, exit)
	switch c.Output = strings.TrimSuffix(output, "\n"); {
	case exit != 0:
		c.Output = fmt.Sprintf("Exit code %d\n%s", exit, c.Output)
	case output == "":
		c.Output = "(Bash completed with no output)"
	}
	return c
}

func shell(name, command string, exit int) foreign.Call {
	return foreign.Call{Name: name, Tool: foreign.ShellTool, Command: command, ExitCode: &exit, Failed: exit != 0}
}

// openCodeID returns a new id of a session. Its first part falls with time.
func openCodeID() string {
	id := uuid.New()
	return fmt.Sprintf("ses_%012xffe%.14s", ^uint64(time.Now().UnixMilli())&(1<<48-1), base32.StdEncoding.EncodeToString(id[:]))
}

func openCodeFiles(dir string, changes []change) (calls []foreign.Call) {
	if rm := removal(changes); rm != "" {
		calls = append(calls, openCodeShell(rm, "", 0))
	}
	for _, c := range changes {
		path := filepath.Join(dir, filepath.FromSlash(c.name))
		call := foreign.Call{Tool: foreign.EditTool, Paths: []string{path}}
		switch {
		case c.after == "":
			continue
		case c.before == nil:
			call.Name, call.Input = "write", arguments(map[string]any{"filePath": path, "content": c.after})
			call.Output = "Wrote file successfully."
		default:
			old, now := hunk(*c.before, c.after)
			call.Name, call.Input = "edit", arguments(map[string]any{"filePath": path, "oldString": old, "newString": now})
			call.Output = "Edit applied successfully."
		}
		calls = append(calls, call)
	}
	return calls
}

func openCodeShell(command, output string, exit int) foreign.Call {
	c := shell("bash", command, exit)
	if c.Output = output; output == "" {
		c.Output = "(no output)"
	}
	return c
}

// codexFiles changes all files with one patch.
func codexFiles(dir string, changes []change) []foreign.Call {
	var patch, done strings.Builder
	var paths []string
	patch.WriteString("*** Begin Patch\n")
	for _, c := range changes {
		paths = append(paths, filepath.Join(dir, filepath.FromSlash(c.name)))
		switch {
		case c.after == "":
			fmt.Fprintf(&patch, "*** Delete File: %s\n", c.name)
			fmt.Fprintf(&done, "D %s\n", c.name)
		case c.before == nil:
			fmt.Fprintf(&patch, "*** Add File: %s\n%s", c.name, marked("+", c.after))
			fmt.Fprintf(&done, "A %s\n", c.name)
		default:
			old, now := hunk(*c.before, c.after)
			fmt.Fprintf(&patch, "*** Update File: %s\n@@\n%s%s", c.name, marked("-", old), marked("+", now))
			fmt.Fprintf(&done, "M %s\n", c.name)
		}
	}
	patch.WriteString("*** End Patch\n")
	text, _ := json.Marshal(patch.String()) // a text always has a form
	return []foreign.Call{{
		Name: "apply_patch", Tool: foreign.EditTool, Input: text, Paths: paths,
		Output: "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n" + done.String(),
	}}
}

func codexShell(command, output string, exit int) foreign.Call {
	c := shell("exec_command", command, exit)
	c.Output = fmt.Sprintf("Chunk ID: %.6x\nWall time: 0.4128 seconds\nProcess exited with code %d\nOriginal token count: %d\nOutput:\n%s",
		sha256.Sum256([]byte(command)), exit, len(output)/4, output)
	return c
}

// codexTask starts a subagent. What it answers is not part of the call.
func codexTask(id, ask string) foreign.Call {
	started := arguments(map[string]any{"agent_id": id, "nickname": "Volta"})
	return foreign.Call{
		Name: "spawn_agent", Tool: foreign.TaskTool, Input: arguments(map[string]any{"message": ask}), Task: ask, Subagent: id, Output: string(started),
	}
}

// marked returns the lines of a text behind a mark.
func marked(mark, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(mark + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// hunk returns the lines in which two texts differ, with as many before them as it takes for
// the first text to have them once.
func hunk(old, now string) (string, string) {
	a, b := strings.SplitAfter(old, "\n"), strings.SplitAfter(now, "\n")
	begin := 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	end := 0
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for begin > 0 && strings.Count(old, strings.Join(a[begin:len(a)-end], "")) != 1 {
		begin--
	}
	return strings.Join(a[begin:len(a)-end], ""), strings.Join(b[begin:len(b)-end], "")
}
