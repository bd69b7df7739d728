package transcript

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// otherTools names the tools whose calls are kept as unknown fields, by their
// field number in the message ToolCall.
var otherTools = map[int32]string{
	26: "exa_search", 27: "exa_fetch", 29: "record_screen", 30: "computer_use", 32: "reflect",
	33: "setup_vm_environment", 35: "start_grind_execution", 36: "start_grind_planning",
	38: "report_bugfix_results", 39: "ai_attribution", 40: "pr_management", 41: "mcp_auth",
	43: "blame_by_file_path", 44: "get_mcp_tools", 45: "report_bug", 46: "set_active_branch",
	48: "communicate_update", 49: "send_final_summary", 50: "update_pr_code_tour", 51: "replace_env",
	52: "edit_pr_labels", 53: "record_ci_investigation_findings", 55: "send_message",
	56: "fetch_cloud_agent_data", 58: "send_to_user", 61: "pi_read", 62: "pi_bash", 63: "pi_edit",
	64: "pi_write", 65: "pi_grep", 66: "pi_find", 67: "pi_ls", 68: "connect_scm",
	69: "search_conversations", 70: "create_goal", 71: "update_goal",
}

// toolName makes "ReadLints" of "read_lints_tool_call".
func toolName(field string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSuffix(field, "_call"), "_tool"), "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// CallName returns the name of the tool that a call is for as the definitions spell
// it, such as "read_lints". It is empty for an unknown tool.
func CallName(call *agentv1.ToolCall) string {
	m := call.ProtoReflect()
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("tool")); f != nil {
		return strings.TrimSuffix(string(f.Name()), "_tool_call")
	}
	for raw := m.GetUnknown(); len(raw) > 0; {
		num, _, n := protowire.ConsumeField(raw)
		if n < 0 {
			break
		}
		if name, ok := otherTools[int32(num)]; ok {
			return name
		}
		raw = raw[n:]
	}
	return ""
}
