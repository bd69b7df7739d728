package cursor

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

// kind says what a blob holds, and so where its references are.
type kind uint8

const (
	kindOpaque kind = iota // text, file contents: no references
	kindState
	kindTurn
	kindOldTurn
	kindStep
	kindUserMessage
	kindArchive
	kindCloudState
)

var kindMessage = map[kind]protoreflect.MessageDescriptor{
	kindState:       (&agentv1.ConversationStateStructure{}).ProtoReflect().Descriptor(),
	kindTurn:        (&agentv1.ConversationTurnStructure{}).ProtoReflect().Descriptor(),
	kindOldTurn:     (&agentv1.AgentConversationTurnStructure{}).ProtoReflect().Descriptor(),
	kindStep:        (&agentv1.ConversationStep{}).ProtoReflect().Descriptor(),
	kindUserMessage: (&agentv1.UserMessage{}).ProtoReflect().Descriptor(),
	kindArchive:     (&agentv1.ConversationSummaryArchive{}).ProtoReflect().Descriptor(),
	kindCloudState:  (&aiserverv1.CloudAgentState{}).ProtoReflect().Descriptor(),
}

const stateMessage = "agent.v1.ConversationStateStructure."

// edges are the fields that hold ids of blobs, and what those blobs hold.
// Besides them, every bytes field whose name ends in blob_id is one, to a blob
// without references.
var edges = map[protoreflect.FullName]kind{
	stateMessage + "root_prompt_messages_json":                kindOpaque,
	stateMessage + "turns_old":                                kindOldTurn,
	stateMessage + "todos":                                    kindOpaque,
	stateMessage + "summary":                                  kindOpaque,
	stateMessage + "plan":                                     kindOpaque,
	stateMessage + "turns":                                    kindTurn,
	stateMessage + "summary_archive":                          kindArchive,
	stateMessage + "summary_archives":                         kindArchive,
	stateMessage + "FileStatesEntry.value":                    kindOpaque,
	stateMessage + "SubagentStateRefsEntry.value":             kindState,
	"agent.v1.FileStateStructure.content":                     kindOpaque,
	"agent.v1.FileStateStructure.initial_content":             kindOpaque,
	"agent.v1.AgentConversationTurnStructure.user_message":    kindUserMessage,
	"agent.v1.AgentConversationTurnStructure.steps":           kindStep,
	"agent.v1.ShellConversationTurnStructure.shell_command":   kindOpaque,
	"agent.v1.ShellConversationTurnStructure.shell_output":    kindOpaque,
	"agent.v1.ConversationSummaryArchive.summarized_messages": kindOpaque,
	"agent.v1.ConversationSummaryArchive.summary_message":     kindOpaque,
	"agent.v1.UserMessage.conversation_state_blob_id":         kindState,
	"agent.v1.TruncatedToolCall.original_step_blob_id":        kindStep,
	"aiserver.v1.CloudAgentState.pr_body":                     kindOpaque,
	"aiserver.v1.CloudAgentState.summary":                     kindOpaque,
	"aiserver.v1.CloudAgentState.branch_name":                 kindOpaque,
	"aiserver.v1.CloudAgentState.pr_url":                      kindOpaque,
	"aiserver.v1.CloudAgentState.agent_name":                  kindOpaque,
	"aiserver.v1.CloudAgentState.config":                      kindOpaque,
}

// ref is a reference from a field to a blob.
type ref struct {
	id    blob.ID
	kind  kind
	field string
}

// maxDepth is how deep messages may nest: 32 subagents, each some levels deep.
const maxDepth = 128

// refs calls fn for every reference in the encoding of a message. It works on
// the wire, so that a hostile message costs no more memory than it has bytes.
// Bytes that are no such message give an error that wraps ErrMalformed, after
// fn was called for what came before.
func refs(k kind, data []byte, fn func(ref) error) error {
	md := kindMessage[k]
	if md == nil {
		return nil
	}
	return walkMessage(md, data, maxDepth, fn)
}

func walkMessage(md protoreflect.MessageDescriptor, data []byte, depth int, fn func(ref) error) error {
	if depth == 0 {
		return fmt.Errorf("%w: messages nest too deep", ErrMalformed)
	}
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("%w: %s: %w", ErrMalformed, md.Name(), protowire.ParseError(n))
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(number, wire, data)
		if n < 0 {
			return fmt.Errorf("%w: %s field %d: %w", ErrMalformed, md.Name(), number, protowire.ParseError(n))
		}
		if fd := md.Fields().ByNumber(number); fd != nil && wire == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			if err := walkField(fd, value, depth, fn); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}

func walkField(fd protoreflect.FieldDescriptor, value []byte, depth int, fn func(ref) error) error {
	if fd.Kind() == protoreflect.MessageKind {
		return walkMessage(fd.Message(), value, depth-1, fn)
	}
	if fd.Kind() != protoreflect.BytesKind || len(value) == 0 {
		return nil
	}
	target, known := edges[fd.FullName()]
	if !known && !strings.HasSuffix(string(fd.Name()), "blob_id") {
		return nil
	}
	id, err := blob.IDFromBytes(value)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMalformed, fd.FullName(), err)
	}
	return fn(ref{id, target, string(fd.FullName())})
}

// checkState reports whether data can be the encoding of a state.
func checkState(data []byte) error {
	return refs(kindState, data, func(ref) error { return nil })
}

// checkEntries counts the entries of each field on the wire.
func checkEntries(data []byte) error {
	counts := map[protowire.Number]int{}
	for len(data) > 0 {
		number, _, n := protowire.ConsumeField(data)
		if n < 0 {
			return fmt.Errorf("%w: %w", ErrMalformed, protowire.ParseError(n))
		}
		if counts[number]++; counts[number] > maxEntries {
			return fmt.Errorf("%w: field %d has more than %d entries", blob.ErrTooLarge, number, maxEntries)
		}
		data = data[n:]
	}
	return nil
}
