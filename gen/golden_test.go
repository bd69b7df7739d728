package gen_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

// golden returns encodings in the form that the reference stores.
func golden(t *testing.T) (state, metadata []byte) {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts struct {
		State    string `json:"conversation_state_hex"`
		Metadata string `json:"cloud_metadata_base64"`
	}
	if err := json.Unmarshal(raw, &texts); err != nil {
		t.Fatal(err)
	}
	if state, err = hex.DecodeString(texts.State); err != nil {
		t.Fatal(err)
	}
	if metadata, err = base64.StdEncoding.DecodeString(texts.Metadata); err != nil {
		t.Fatal(err)
	}
	return state, metadata
}

func TestGoldenConversationState(t *testing.T) {
	raw, _ := golden(t)
	got := new(agentv1.ConversationStateStructure)
	if err := proto.Unmarshal(raw, got); err != nil {
		t.Fatal(err)
	}
	if n := len(got.ProtoReflect().GetUnknown()); n != 0 {
		t.Errorf("got %d bytes of unknown fields, want none", n)
	}
	want := &agentv1.ConversationStateStructure{
		RootPromptMessagesJson: [][]byte{
			id(t, "d1088139c29ae926365224316aae7bcc79b6bb8c4f34b57e9943b5e3e0312bcb"),
			id(t, "e673c452af84f405ab180c77074ece9c932d997e9b63d2d2f0ea66b6d87d9285"),
			id(t, "e9a30a70fe12fa660c1555d8175c8450a65efa135964b60e803d65152599db80"),
		},
		Todos:                 [][]byte{id(t, "94473b458dd33564a031563a60db8062c15ee480e0d3d3ffb22c706c821c5e74")},
		PendingToolCalls:      []string{"call_1"},
		TokenDetails:          &agentv1.ConversationTokenDetails{UsedTokens: 4242, MaxTokens: 200000},
		Summary:               id(t, "805466423490d9ee56043081c8cee51f081601ce86a24ccaedad868632d20e3f"),
		Plan:                  id(t, "1cc7fda5cfc3cb09effba3e72fb8983a59fcbd94daa34cd3371ea9e426bc2fbd"),
		Turns:                 [][]byte{id(t, agentTurn), id(t, "19fc50120fe45da6b3532e624f4f7394e40bda4c913c513650abb9d7a69fef6f")},
		PreviousWorkspaceUris: []string{"file:///w"},
		Mode:                  agentv1.AgentMode_AGENT_MODE_AGENT.Enum(),
		SummaryArchives:       [][]byte{id(t, "d33aaae3d5d0329d0d59007963380a25c66329170dcd1f17592412eb7725f346")},
		TurnTimings:           []*agentv1.StepTiming{{DurationMs: 900, TimestampMs: 1700000000500}},
		FileStatesV2: map[string]*agentv1.FileStateStructure{
			"/w/a.txt": {
				Content:        id(t, "b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2"),
				InitialContent: id(t, "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"),
			},
			"/w/empty": {Content: id(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")},
		},
		SubagentStates: map[string]*agentv1.SubagentPersistedState{"sub-1": {
			ConversationState:   &agentv1.ConversationStateStructure{Turns: [][]byte{id(t, agentTurn)}},
			CreatedTimestampMs:  1700000000000,
			LastUsedTimestampMs: 1700000001000,
			SubagentType: &agentv1.SubagentType{Type: &agentv1.SubagentType_Custom{
				Custom: &agentv1.SubagentTypeCustom{Name: "reviewer"},
			}},
		}},
		SelfSummaryCount: 2,
		ReadPaths:        []string{"/w/a.txt"},
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if again := encode(t, got.ProtoReflect()); !bytes.Equal(again, raw) {
		t.Errorf("got encoding %x, want %x", again, raw)
	}
}

// agentTurn is the turn that the conversation and its subagent share.
const agentTurn = "7246c0b8dfdcb1612d899e3dfe354286cac1d6b1a322f8e114dff3a1f58f19c5"

func id(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenCloudMetadata(t *testing.T) {
	_, raw := golden(t)
	got := new(aiserverv1.CloudAgentStatePersistedMetadata)
	if err := proto.Unmarshal(raw, got); err != nil {
		t.Fatal(err)
	}
	want := &aiserverv1.CloudAgentStatePersistedMetadata{
		CloudAgentStateBlobId: id(t, "64557607c0eb311d6c527a9a2045846b9f108003a2e56f7dce55a34bbe365295"),
		OffsetKey:             "0000000000000009-0",
		TimestampMs:           1700000002000,
		WorkflowStatus:        aiserverv1.CloudAgentWorkflowStatus_CLOUD_AGENT_WORKFLOW_STATUS_IDLE,
		Version:               aiserverv1.CloudAgentStatePersistedMetadata_PERSISTED_METADATA_VERSION_1,
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if again := encode(t, got.ProtoReflect()); !bytes.Equal(again, raw) {
		t.Errorf("got encoding %x, want %x", again, raw)
	}
}
