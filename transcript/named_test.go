package transcript_test

import (
	"strings"
	"testing"
)

// The edit tools of other agents have a path, and what they exchanged is a diff.
func TestToolsOfOtherAgents(t *testing.T) {
	f := newFixture(t)
	f.save(t, "c", turn(t, user("change it"),
		mcpCall("Edit", map[string]any{"file_path": "/ws/a.go", "old_string": "one\ntwo\n", "new_string": "one\n2\nthree\n"}, "done"),
		mcpCall("edit", map[string]any{"filePath": "b.go", "oldString": "x\n", "newString": ""}, "done"),
		mcpCall("Write", map[string]any{"file_path": "/ws/c.go", "content": "x\n"}, "done"),
		mcpCall("ask", map[string]any{"old_string": "a", "new_string": "b", "path": 7.0}, "done"),
		mcpCall("apply_patch", map[string]any{"input": "*** Begin Patch\n*** Update File: src/d.go\n@@\n-a\n+b\n*** Add File: e.go\n+x\n*** End Patch\n"}, "done"),
		mcpCall("apply_patch", map[string]any{"input": "nothing"}, "done"),
		mcpCall("note", map[string]any{"input": "*** Update File: f.go\n"}, "done")))
	want := []struct {
		path           string
		added, removed int
	}{{"/ws/a.go", 2, 1}, {"b.go", 0, 1}, {"/ws/c.go", 0, 0}, {"", 0, 0}, {"src/d.go", 0, 0}, {"", 0, 0}, {"", 0, 0}}
	for i, m := range f.messages(t, "c", nil)[1:] {
		tool, w := m.Tool, want[i]
		if tool.Path != w.path || tool.Added != w.added || tool.Removed != w.removed || (tool.Diff != "") != (w.added+w.removed > 0) {
			t.Errorf("%s: path %q, +%d -%d\n%s", tool.Name, tool.Path, tool.Added, tool.Removed, tool.Diff)
		}
	}
	if text := f.written(t, "c", "md", nil); !strings.Contains(text, "+three") {
		t.Error(text)
	}
}
