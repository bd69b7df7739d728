package conversation

// Labels of a conversation that is copied from a session of an agent.
const (
	// LabelSource is the name of the agent.
	LabelSource = "source"
	// LabelPath is the path of the agent's own record.
	LabelPath = "source_path"
)

// Labels that relate one conversation to another.
const (
	// LabelParent is the conversation whose tool call started this one, and
	// LabelSubagent is set if there is one.
	LabelParent   = "parent"
	LabelSubagent = "subagent"
)

// SubagentOf returns the conversation whose tool call started this one as a subagent, or
// "".
func (i Info) SubagentOf() string {
	if i.Labels[LabelSubagent] == "" || i.Labels[LabelParent] == i.ID {
		return ""
	}
	return i.Labels[LabelParent]
}
