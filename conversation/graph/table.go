package graph

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Edge is a row of the table: a field of a message that names a blob, or that embeds
// a message with references.
type Edge struct {
	// Message is the full name of the message that has the field.
	Message string
	Field   protowire.Number
	// Name is the field's name.
	Name string
	// Target is the kind of the blob that the field names.
	Target Kind
	// Into, if not empty, is the message that the field embeds; Target is then
	// unused.
	Into string
	// Map means that the field is a map; the edge applies to its values.
	Map bool
	// Always means that each entry names a blob: an empty id in such a list or map is
	// malformed.
	Always bool
}

const (
	state       = "agent.v1.ConversationStateStructure"
	fileV2      = "agent.v1.FileStateStructure"
	subagent    = "agent.v1.SubagentPersistedState"
	turn        = "agent.v1.ConversationTurnStructure"
	agentTurn   = "agent.v1.AgentConversationTurnStructure"
	shellTurn   = "agent.v1.ShellConversationTurnStructure"
	archive     = "agent.v1.ConversationSummaryArchive"
	userMessage = "agent.v1.UserMessage"
	selected    = "agent.v1.SelectedContext"
	image       = "agent.v1.SelectedImage"
	imageData   = "agent.v1.SelectedImage.BlobIdWithData"
	video       = "agent.v1.SelectedVideo"
	videoData   = "agent.v1.SelectedVideo.BlobIdWithData"
	document    = "agent.v1.SelectedDocument"
	docData     = "agent.v1.SelectedDocument.BlobIdWithData"
	invocation  = "agent.v1.InvocationContext"
	link        = "agent.v1.SelectedExternalLink"
	extra       = "agent.v1.ExtraContextEntry"
	prDiff      = "agent.v1.SelectedGitPRDiffSelection"
	pullRequest = "agent.v1.SelectedPullRequest"
	step        = "agent.v1.ConversationStep"
	toolCall    = "agent.v1.ToolCall"
	readCall    = "agent.v1.ReadToolCall"
	readResult  = "agent.v1.ReadToolResult"
	readSuccess = "agent.v1.ReadToolSuccess"
	taskCall    = "agent.v1.TaskToolCall"
	taskResult  = "agent.v1.TaskResult"
	taskSuccess = "agent.v1.TaskSuccess"
	truncated   = "agent.v1.TruncatedToolCall"
	action      = "agent.v1.ConversationAction"
	userAction  = "agent.v1.UserMessageAction"
	cancel      = "agent.v1.CancelAction"
	startPlan   = "agent.v1.StartPlanAction"
	resolutions = "agent.v1.InterruptedPendingToolCallResolutions"
	resolution  = "agent.v1.InterruptedPendingToolCallResolution"
	cloud       = "aiserver.v1.CloudAgentState"
	synthesis   = "aiserver.v1.SynthesisSubagentConfig"
)

var edges = []Edge{
	{Message: state, Field: 1, Name: "root_prompt_messages_json", Target: Prompt, Always: true},
	{Message: state, Field: 2, Name: "turns_old", Target: AgentTurn, Always: true},
	{Message: state, Field: 3, Name: "todos", Target: Todo, Always: true},
	{Message: state, Field: 6, Name: "summary", Target: Summary},
	{Message: state, Field: 7, Name: "plan", Target: Plan},
	{Message: state, Field: 8, Name: "turns", Target: Turn, Always: true},
	{Message: state, Field: 11, Name: "summary_archive", Target: Archive},
	{Message: state, Field: 12, Name: "file_states", Target: FileState, Map: true},
	{Message: state, Field: 13, Name: "summary_archives", Target: Archive, Always: true},
	{Message: state, Field: 15, Name: "file_states_v2", Into: fileV2, Map: true},
	{Message: state, Field: 16, Name: "subagent_states", Into: subagent, Map: true},
	{Message: state, Field: 31, Name: "subagent_state_refs", Target: State, Map: true, Always: true},
	{Message: fileV2, Field: 1, Name: "content", Target: Bytes},
	{Message: fileV2, Field: 2, Name: "initial_content", Target: Bytes},
	{Message: subagent, Field: 1, Name: "conversation_state", Into: state},

	{Message: turn, Field: 1, Name: "agent_conversation_turn", Into: agentTurn},
	{Message: turn, Field: 2, Name: "shell_conversation_turn", Into: shellTurn},
	{Message: agentTurn, Field: 1, Name: "user_message", Target: UserMessage},
	{Message: agentTurn, Field: 2, Name: "steps", Target: Step, Always: true},
	{Message: shellTurn, Field: 1, Name: "shell_command", Target: ShellCommand},
	{Message: shellTurn, Field: 2, Name: "shell_output", Target: ShellOutput},

	// A collector without these two would delete the history before a summary.
	{Message: archive, Field: 1, Name: "summarized_messages", Target: Prompt, Always: true},
	{Message: archive, Field: 4, Name: "summary_message", Target: Prompt},

	{Message: userMessage, Field: 3, Name: "selected_context", Into: selected},
	{Message: userMessage, Field: 10, Name: "conversation_state_blob_id", Target: State},
	{Message: userMessage, Field: 18, Name: "text_blob_id", Target: Text},
	{Message: userMessage, Field: 19, Name: "rich_text_blob_id", Target: Text},
	{Message: selected, Field: 1, Name: "selected_images", Into: image},
	{Message: selected, Field: 2, Name: "invocation_context", Into: invocation},
	{Message: selected, Field: 9, Name: "external_links", Into: link},
	{Message: selected, Field: 16, Name: "extra_context_entries", Into: extra},
	{Message: selected, Field: 20, Name: "git_pr_diff_selections", Into: prDiff},
	{Message: selected, Field: 21, Name: "selected_pull_requests", Into: pullRequest},
	{Message: selected, Field: 23, Name: "selected_videos", Into: video},
	{Message: selected, Field: 25, Name: "selected_documents", Into: document},
	{Message: image, Field: 1, Name: "blob_id", Target: Bytes},
	{Message: image, Field: 9, Name: "blob_id_with_data", Into: imageData},
	{Message: imageData, Field: 1, Name: "blob_id", Target: Bytes},
	{Message: video, Field: 1, Name: "blob_id", Target: Bytes},
	{Message: video, Field: 9, Name: "blob_id_with_data", Into: videoData},
	{Message: videoData, Field: 1, Name: "blob_id", Target: Bytes},
	{Message: document, Field: 1, Name: "blob_id", Target: Bytes},
	{Message: document, Field: 9, Name: "blob_id_with_data", Into: docData},
	{Message: docData, Field: 1, Name: "blob_id", Target: Bytes},
	{Message: invocation, Field: 10, Name: "blob_id", Target: Invocation},
	{Message: link, Field: 6, Name: "blob_id", Target: Text},
	{Message: extra, Field: 2, Name: "blob_id", Target: Text},
	{Message: prDiff, Field: 6, Name: "blob_id", Target: Text},
	{Message: pullRequest, Field: 7, Name: "blob_id", Target: Bytes},

	{Message: step, Field: 2, Name: "tool_call", Into: toolCall},
	{Message: toolCall, Field: 8, Name: "read_tool_call", Into: readCall},
	{Message: toolCall, Field: 19, Name: "task_tool_call", Into: taskCall},
	{Message: toolCall, Field: 34, Name: "truncated_tool_call", Into: truncated},
	{Message: readCall, Field: 2, Name: "result", Into: readResult},
	{Message: readResult, Field: 1, Name: "success", Into: readSuccess},
	{Message: readSuccess, Field: 9, Name: "data_blob_id", Target: Bytes},
	{Message: readSuccess, Field: 10, Name: "content_blob_id", Target: Text},
	{Message: taskCall, Field: 2, Name: "result", Into: taskResult},
	{Message: taskResult, Field: 1, Name: "success", Into: taskSuccess},
	{Message: taskSuccess, Field: 1, Name: "conversation_steps", Into: step},
	{Message: truncated, Field: 1, Name: "original_step_blob_id", Target: Step},

	{Message: action, Field: 1, Name: "user_message_action", Into: userAction},
	{Message: action, Field: 3, Name: "cancel_action", Into: cancel},
	{Message: action, Field: 6, Name: "start_plan_action", Into: startPlan},
	{Message: userAction, Field: 1, Name: "user_message", Into: userMessage},
	{Message: userAction, Field: 4, Name: "prepend_user_messages", Into: userMessage},
	{Message: userAction, Field: 6, Name: "interrupted_pending_tool_call_resolutions", Into: resolutions},
	{Message: cancel, Field: 3, Name: "interrupted_pending_tool_call_resolutions", Into: resolutions},
	{Message: startPlan, Field: 1, Name: "user_message", Into: userMessage},
	{Message: resolutions, Field: 1, Name: "resolutions", Into: resolution},
	{Message: resolution, Field: 3, Name: "task_result", Into: taskResult},

	{Message: cloud, Field: 1, Name: "conversation_state", Into: state},
	{Message: cloud, Field: 3, Name: "pr_body", Target: Text},
	{Message: cloud, Field: 4, Name: "summary", Target: Text},
	{Message: cloud, Field: 5, Name: "branch_name", Target: Text},
	{Message: cloud, Field: 6, Name: "pr_url", Target: Text},
	{Message: cloud, Field: 8, Name: "agent_name", Target: Text},
	{Message: cloud, Field: 11, Name: "config", Target: Bytes},
	{Message: cloud, Field: 13, Name: "original_prompt_blob_id", Target: Bytes},
	{Message: cloud, Field: 14, Name: "repository_info_blob_id", Target: Bytes},
	{Message: cloud, Field: 15, Name: "original_conversation_action_blob_id", Target: Action},
	{Message: cloud, Field: 16, Name: "video_annotations_blob_id", Target: Bytes},
	{Message: cloud, Field: 31, Name: "synthesis_subagent_config", Into: synthesis},
	{Message: cloud, Field: 32, Name: "start_request_blob_id", Target: Bytes},
	{Message: cloud, Field: 33, Name: "commit_reminder_state_blob_id", Target: Bytes},
	{Message: cloud, Field: 34, Name: "grind_mode_tracking_state_blob_id", Target: Bytes},
	{Message: cloud, Field: 35, Name: "workflow_control_state_blob_id", Target: Bytes},
	{Message: cloud, Field: 38, Name: "resolved_egress_policy_blob_id", Target: Bytes},
	{Message: cloud, Field: 40, Name: "pending_pr_blob_id", Target: Bytes},
	{Message: cloud, Field: 42, Name: "next_turn_system_reminders_blob_id", Target: Bytes},
	{Message: cloud, Field: 43, Name: "cloud_plugin_manifest_blob_id", Target: Bytes},
	{Message: cloud, Field: 50, Name: "pending_summarization_state_blob_id", Target: Bytes},
	{Message: cloud, Field: 51, Name: "pending_summarization_snapshot_blob_id", Target: Bytes},
	{Message: cloud, Field: 52, Name: "admitted_custom_mode_state_blob_id", Target: Bytes},
	{Message: synthesis, Field: 2, Name: "original_user_prompt_blob_id", Target: Text},
}

// Edges returns the table, for inspection.
func Edges() []Edge { return append([]Edge(nil), edges...) }

// shape is the part of the table for one message, indexed.
type shape struct {
	message string
	edges   map[protowire.Number]*resolved
}

// resolved is an Edge whose embedded message is resolved.
type resolved struct {
	Edge
	into   *shape
	dotted string // the name and a dot
}

// shapes indexes the table on first use.
var shapes = sync.OnceValue(func() map[string]*shape {
	all := make(map[string]*shape)
	get := func(message string) *shape {
		s := all[message]
		if s == nil {
			s = &shape{message: message, edges: make(map[protowire.Number]*resolved)}
			all[message] = s
		}
		return s
	}
	for _, e := range edges {
		l := &resolved{Edge: e, dotted: e.Name + "."}
		if e.Into != "" {
			l.into = get(e.Into)
		}
		get(e.Message).edges[e.Field] = l
	}
	return all
})
