package transcript

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// detail adds what known cannot: the output of tools in its usual form.
func (r *resolver) detail(ctx context.Context, t *Tool, call *agentv1.ToolCall) error {
	switch tool := call.Tool.(type) {
	case *agentv1.ToolCall_ShellToolCall:
		shellOutput(t, tool.ShellToolCall.GetResult())
	case *agentv1.ToolCall_ReadToolCall:
		return r.readOutput(ctx, t, tool.ReadToolCall.GetResult().GetSuccess())
	case *agentv1.ToolCall_EditToolCall:
		editOutput(t, tool.EditToolCall.GetResult().GetSuccess())
	case *agentv1.ToolCall_DeleteToolCall:
		deleteOutput(t, tool.DeleteToolCall.GetResult().GetSuccess())
	case *agentv1.ToolCall_ApplyAgentDiffToolCall:
		applyOutput(t, tool.ApplyAgentDiffToolCall.GetResult())
	case *agentv1.ToolCall_GrepToolCall:
		grepOutput(t, tool.GrepToolCall.GetResult().GetSuccess())
	case *agentv1.ToolCall_GlobToolCall:
		if s := tool.GlobToolCall.GetResult().GetSuccess(); s != nil {
			t.Output = lines(s.Files)
		}
	case *agentv1.ToolCall_LsToolCall:
		if s := tool.LsToolCall.GetResult().GetSuccess(); s != nil {
			var b strings.Builder
			tree(&b, s.DirectoryTreeRoot, 0)
			t.Output = b.String()
		}
	case *agentv1.ToolCall_McpToolCall:
		mcpOutput(t, tool.McpToolCall)
	case *agentv1.ToolCall_TaskToolCall:
		taskOutput(t, tool.TaskToolCall)
	default:
		textOutput(t, call)
	}
	return nil
}

// textOutput is for the tools whose result is one text.
func textOutput(t *Tool, call *agentv1.ToolCall) {
	switch tool := call.Tool.(type) {
	case *agentv1.ToolCall_SemSearchToolCall:
		setText(t, tool.SemSearchToolCall.GetResult().GetSuccess().GetResults())
	case *agentv1.ToolCall_WebFetchToolCall:
		setText(t, tool.WebFetchToolCall.GetResult().GetSuccess().GetMarkdown())
	case *agentv1.ToolCall_FetchToolCall:
		setText(t, tool.FetchToolCall.GetResult().GetSuccess().GetContent())
	case *agentv1.ToolCall_ReadMcpResourceToolCall:
		setText(t, tool.ReadMcpResourceToolCall.GetResult().GetSuccess().GetText())
	case *agentv1.ToolCall_UpdateTodosToolCall:
		setText(t, todos(tool.UpdateTodosToolCall.GetResult().GetSuccess().GetTodos()))
	case *agentv1.ToolCall_ReadTodosToolCall:
		setText(t, todos(tool.ReadTodosToolCall.GetResult().GetSuccess().GetTodos()))
	case *agentv1.ToolCall_GenerateImageToolCall:
		if s := tool.GenerateImageToolCall.GetResult().GetSuccess(); s != nil {
			t.Path = s.FilePath
			t.Output = fmt.Sprintf("[image, %d bytes as text]", len(s.ImageData))
		}
	}
}

func setText(t *Tool, s string) {
	if s != "" {
		t.Output = s
	}
}

func lines(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "\n") + "\n"
}

func shellOutput(t *Tool, result *agentv1.ShellResult) {
	switch {
	case result.GetSuccess() != nil:
		s := result.GetSuccess()
		t.Exit = int(s.ExitCode)
		t.Output = streams(s.GetInterleavedOutput(), s.Stdout, s.Stderr, s.GetOutputHead(), s.GetOutputTail(), s.GetElidedChars())
		if s.ExitCode != 0 {
			t.Status = Failed
		}
	case result.GetFailure() != nil:
		s := result.GetFailure()
		t.Exit = int(s.ExitCode)
		t.Output = streams(s.GetInterleavedOutput(), s.Stdout, s.Stderr, s.GetOutputHead(), s.GetOutputTail(), s.GetElidedChars())
	}
}

// streams joins the output of a command, in the best available form.
func streams(both, stdout, stderr, head, tail string, elided uint32) string {
	switch {
	case both != "":
		return both
	case stdout+stderr != "":
		return joined(stdout, stderr)
	case elided > 0:
		return joined(head, fmt.Sprintf("[%d characters left out]\n", elided), tail)
	}
	return joined(head, tail)
}

// joined joins texts with newlines.
func joined(texts ...string) string {
	var b strings.Builder
	for _, s := range texts {
		if s == "" {
			continue
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(s)
	}
	return b.String()
}

func (r *resolver) readOutput(ctx context.Context, t *Tool, s *agentv1.ReadToolSuccess) error {
	switch out := s.GetOutput().(type) {
	case *agentv1.ReadToolSuccess_Content:
		t.Output = out.Content
	case *agentv1.ReadToolSuccess_Data:
		t.Output = fmt.Sprintf("[%d bytes]", len(out.Data))
	case *agentv1.ReadToolSuccess_DataBlobId:
		t.Output = fmt.Sprintf("[%d bytes]", s.FileSize)
	case *agentv1.ReadToolSuccess_ContentBlobId:
		text, err := r.text(ctx, out.ContentBlobId)
		if err != nil {
			return fmt.Errorf("read the content that a call read: %w", err)
		}
		t.Output = text
	case nil:
		if s != nil {
			t.Output = ""
		}
	}
	return nil
}

func editOutput(t *Tool, s *agentv1.EditSuccess) {
	if s == nil {
		return
	}
	t.Output = s.GetMessage()
	if s.BeforeFullFileContent != nil || s.AfterFullFileContent != "" {
		t.Diff, t.Added, t.Removed = Diff(t.Path, s.BeforeFullFileContent, &s.AfterFullFileContent)
		return
	}
	t.Diff = s.GetDiffString()
	t.Added, t.Removed = countForeign(t.Diff)
	if s.LinesAdded != nil || s.LinesRemoved != nil {
		t.Added, t.Removed = int(s.GetLinesAdded()), int(s.GetLinesRemoved())
	}
}

func deleteOutput(t *Tool, s *agentv1.DeleteSuccess) {
	if s == nil {
		return
	}
	t.Output = ""
	t.Diff, t.Added, t.Removed = Diff(t.Path, &s.PrevContent, nil)
}

func applyOutput(t *Tool, result *agentv1.ApplyAgentDiffResult) {
	changes := result.GetSuccess().GetAppliedChanges()
	if failed := result.GetError(); failed != nil {
		changes = failed.AppliedChanges
	} else {
		t.Output = ""
	}
	for _, c := range changes {
		d, added, removed := Diff(c.Path, c.BeforeContent, c.AfterContent)
		t.Diff += d
		t.Added, t.Removed = t.Added+added, t.Removed+removed
		if c.GetError() != "" {
			t.Output = joined(t.Output, c.Path+": "+c.GetError())
		}
		if t.Path == "" {
			t.Path = c.Path
		}
	}
}

func grepOutput(t *Tool, s *agentv1.GrepSuccess) {
	if s == nil {
		return
	}
	var b strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(s.WorkspaceResults)) {
		grepUnion(&b, s.WorkspaceResults[dir])
	}
	grepUnion(&b, s.ActiveEditorResult)
	t.Output = b.String()
}

func grepUnion(b *strings.Builder, u *agentv1.GrepUnionResult) {
	for _, c := range u.GetCount().GetCounts() {
		fmt.Fprintf(b, "%s:%d\n", c.File, c.Count)
	}
	for _, f := range u.GetFiles().GetFiles() {
		fmt.Fprintln(b, f)
	}
	for _, f := range u.GetContent().GetMatches() {
		for _, m := range f.Matches {
			sep := ':'
			if m.IsContextLine {
				sep = '-'
			}
			fmt.Fprintf(b, "%s%c%d%c%s\n", f.File, sep, m.LineNumber, sep, m.Content)
		}
	}
}

// tree lists a directory, two spaces for each level below it.
func tree(b *strings.Builder, n *agentv1.LsDirectoryTreeNode, depth int) {
	indent := strings.Repeat("  ", min(depth, maxIndent))
	b.WriteString(indent + strings.TrimSuffix(n.GetAbsPath(), "/") + "/\n")
	for _, d := range n.GetChildrenDirs() {
		tree(b, d, depth+1)
	}
	for _, f := range n.GetChildrenFiles() {
		b.WriteString(indent + "  " + f.GetName() + "\n")
	}
}

// maxIndent keeps an extremely deep tree from filling memory with spaces.
const maxIndent = 64

func todos(list []*agentv1.TodoItem) string {
	marks := map[agentv1.TodoStatus]string{
		agentv1.TodoStatus_TODO_STATUS_COMPLETED: "x", agentv1.TodoStatus_TODO_STATUS_IN_PROGRESS: "~", agentv1.TodoStatus_TODO_STATUS_CANCELLED: "-",
	}
	var b strings.Builder
	for _, item := range list {
		mark := marks[item.GetStatus()]
		if mark == "" {
			mark = " "
		}
		fmt.Fprintf(&b, "[%s] %s\n", mark, item.GetContent())
	}
	return b.String()
}

// patchFile finds the files that the patch of an apply_patch tool names. The first one
// stands for all.
var patchFile = regexp.MustCompile(`(?m)^\*\*\* (?:Add|Update|Delete) File: (.+?)\r?$`)

func mcpOutput(t *Tool, call *agentv1.McpToolCall) {
	args := call.GetArgs()
	if name := args.GetToolName(); name != "" {
		t.Name = name
	} else if args.GetName() != "" {
		t.Name = args.GetName()
	}
	if args != nil {
		in := make(map[string]any, len(args.Args))
		for k, v := range args.Args {
			in[k] = v.AsInterface()
		}
		t.Input = in
		t.Path = firstText(in, "file_path", "filePath", "absolute_path", "path")
		if m := patchFile.FindStringSubmatch(firstText(in, "input", "patch", "command")); t.Path == "" && t.Name == "apply_patch" && m != nil {
			t.Path = m[1]
		}
	}
	s := call.GetResult().GetSuccess()
	if s == nil {
		return
	}
	t.replaced()
	var texts []string
	for _, item := range s.Content {
		if image := item.GetImage(); image != nil {
			texts = append(texts, fmt.Sprintf("[%s, %d bytes]", image.MimeType, len(image.Data)))
		}
		texts = append(texts, item.GetText().GetText())
	}
	t.Output = joined(texts...)
	if t.Output == "" && s.StructuredContent != nil {
		t.Output = indented(s.StructuredContent.AsMap())
	}
	if s.IsError {
		t.Status = Failed
	}
}

// replaced shows the replacement that an edit tool of another agent made, if its
// input has it. The place in the file is unknown.
func (t *Tool) replaced() {
	in, _ := t.Input.(map[string]any)
	for _, names := range [][2]string{{"old_string", "new_string"}, {"oldString", "newString"}, {"oldText", "newText"}} {
		before, ok1 := in[names[0]].(string)
		after, ok2 := in[names[1]].(string)
		if ok1 && ok2 && t.Path != "" {
			t.Diff, t.Added, t.Removed = Diff(t.Path, &before, &after)
			return
		}
	}
}

// firstText returns the first of some arguments that is a text.
func firstText(in map[string]any, names ...string) string {
	for _, name := range names {
		if text, ok := in[name].(string); ok && text != "" {
			return text
		}
	}
	return ""
}

// taskOutput names the subagent; its steps are separate messages.
func taskOutput(t *Tool, call *agentv1.TaskToolCall) {
	t.Subagent = call.GetArgs().GetAgentId()
	if s := call.GetResult().GetSuccess(); s != nil {
		if s.GetAgentId() != "" {
			t.Subagent = s.GetAgentId()
		}
		t.Output = s.GetResultSuffix()
	}
}
