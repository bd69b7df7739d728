package cursorexport

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/transcript"
)

// Versions of the rows that are written.
const (
	conversationVersion = 16
	messageVersion      = 3
)

// encode encodes values that JSON can always represent.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("cursorexport: encode a row: " + err.Error())
	}
	return data
}

// headerOf returns the entry of the editor's list.
func headerOf(info conversation.Info) cursor.Header {
	return cursor.Header{
		ID: info.ID, Title: info.Title, Created: info.Created, Updated: info.Updated,
		Archived: info.Labels["archived"] == "true", Subagent: info.Labels["subagent"] == "true", Parent: info.SubagentOf(),
	}
}

// composer writes the row of a conversation that is new to the editor, with its
// messages and checkpoints.
func (e *exporter) composer(ctx context.Context, info conversation.Info) error {
	t, err := e.reader.At(ctx, info.Root)
	if err != nil {
		return lost(cursor.HeadPrefix+info.ID, info.Root, err)
	}
	files, err := e.files(ctx, info)
	if err != nil {
		return err
	}
	order, err := e.messages(ctx, info.ID, t, 0, files)
	if err != nil {
		return err
	}
	state, err := e.src.Blobs.Get(ctx, info.Root)
	if err != nil {
		return lost(cursor.HeadPrefix+info.ID, info.Root, err)
	}
	row := map[string]any{
		"_v": conversationVersion, "composerId": info.ID, "name": info.Title, "isNAL": true,
		"createdAt": info.Created.UnixMilli(), "lastUpdatedAt": info.Updated.UnixMilli(),
		"unifiedMode":                 cmp.Or(info.Labels["mode"], "agent"),
		"fullConversationHeadersOnly": order, "conversationState": conversation.EncodeText(state),
		"originalFileStates": files.originalStates(),
	}
	if files != nil {
		row["latestCheckpointId"] = files.latest
	}
	if info.Workspace != "" {
		row["workspaceIdentifier"] = map[string]any{"uri": jsoncheckpoint.FileURI(info.Workspace)}
	}
	if parent := info.SubagentOf(); parent != "" {
		row["subagentInfo"] = map[string]string{"parentComposerId": parent}
	}
	return e.row(ctx, cursor.ConversationPrefix+info.ID, encode(row))
}

// entry is an entry of a conversation's order.
type entry struct {
	ID   string      `json:"bubbleId"`
	Role cursor.Role `json:"type"`
}

// message is a message that is not written yet.
type message struct {
	entry
	turn int
	row  map[string]any
}

// messages writes the messages of the turns after the first ones, and returns their order.
func (e *exporter) messages(ctx context.Context, conv string, t *transcript.Transcript, from int, files *files) ([]entry, error) {
	order, taken := []entry{}, map[string]bool{}
	var last *message
	end := func(next int) error {
		if last == nil {
			return nil
		}
		if id := files.after(last.turn); id != "" && last.turn != next {
			last.row["afterCheckpointId"] = id
		}
		order = append(order, last.entry)
		e.result.Messages++
		return e.row(ctx, cursor.MessagePrefix+conv+":"+last.ID, encode(last.row))
	}
	opts := &transcript.Options{TurnFrom: from, WithoutSubagents: true, WithoutSummaries: true}
	step := 0
	for m, err := range t.Messages(ctx, opts) {
		if err != nil {
			return nil, err
		}
		if m.Subagent != "" {
			continue
		}
		if err := end(m.Turn); err != nil {
			return nil, err
		}
		first := last == nil || last.turn != m.Turn
		step++
		last = newMessage(conv, m, step, taken)
		if id := files.before(m.Turn); first && id != "" {
			last.row["checkpointId"] = id
		}
	}
	return order, end(-1)
}

// newMessage makes the row of a message. A message of the user keeps its id, under
// which states are stored. The ids of others are derived from their place, so that a
// second export gives the same ids.
func newMessage(conv string, m transcript.Message, step int, taken map[string]bool) *message {
	role := cursor.RoleAssistant
	if m.Role == transcript.User {
		role = cursor.RoleUser
	}
	id := m.ID
	if role != cursor.RoleUser || taken[id] {
		id = uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s\x00%d\x00%d", conv, m.Turn, step)).String()
	}
	taken[id] = true
	row := map[string]any{"_v": messageVersion, "type": role, "bubbleId": id, "text": ""}
	if !m.Time.IsZero() {
		row["createdAt"] = m.Time.UTC().Format(time.RFC3339Nano)
	}
	switch m.Kind {
	case transcript.Thinking:
		row["thinking"] = map[string]string{"text": m.Text}
	case transcript.ToolCall:
		row["toolFormerData"] = toolRow(m)
	case transcript.Shell:
		row["text"] = "$ " + m.Text
		if m.Tool.Output != "" {
			row["text"] = "$ " + m.Text + "\n" + m.Tool.Output
		}
	default:
		row["text"] = m.Text
	}
	return &message{entry: entry{id, role}, turn: m.Turn, row: row}
}

// toolNames are the editor's names of tools, which an import recognizes.
var toolNames = map[string]string{"Shell": "run_terminal_command_v2", "Read": "read_file_v2"}

var toolStates = map[transcript.Status]string{
	transcript.Succeeded: "completed", transcript.Failed: "error", transcript.TimedOut: "error", transcript.Rejected: "rejected",
	transcript.Pending: "loading", transcript.Running: "loading",
}

// toolRow describes a call as the editor does: input and output are texts of JSON.
func toolRow(m transcript.Message) map[string]any {
	tool := m.Tool
	row := map[string]any{
		"name": cmp.Or(toolNames[tool.Name], tool.Name), "toolCallId": m.ID, "status": toolStates[tool.Status], "params": string(encode(tool.Input)),
	}
	if tool.Status == transcript.Pending || tool.Status == transcript.Running {
		return row
	}
	result := map[string]any{"output": tool.Output}
	switch tool.Name {
	case "Shell":
		result["exitCodeV2"] = tool.Exit
	case "Read":
		result = map[string]any{"contents": tool.Output}
	}
	row["result"] = string(encode(result))
	return row
}
