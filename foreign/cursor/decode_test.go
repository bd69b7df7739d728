package cursor

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
)

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestFamiliesAreInKeyOrder(t *testing.T) {
	if !slices.IsSorted(families) {
		t.Errorf("gaps need sorted families: %v", families)
	}
	for _, key := range []string{"bc-1:cloudAgent:metadata", "", "zzz", "agentKv:zzz:cloudAgent:metadata", "composer:cloudAgent:metadata"} {
		n := 0
		for _, g := range gaps() {
			if key >= g.start && (g.end == "" || key < g.end) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q lies in %d gaps, want 1", key, n)
		}
	}
	for _, p := range families {
		for _, g := range gaps() {
			if key := p + "x"; key >= g.start && (g.end == "" || key < g.end) {
				t.Errorf("%q lies in the gap %v", key, g)
			}
		}
	}
}

func TestMetadata(t *testing.T) {
	id := blob.Sum([]byte("state"))
	message := func(version int32, at float64) []byte {
		return marshal(t, &aiserverv1.CloudAgentStatePersistedMetadata{
			CloudAgentStateBlobId: id.Bytes(), OffsetKey: "7", TimestampMs: at,
			Version: aiserverv1.CloudAgentStatePersistedMetadata_PersistedMetadataVersion(version),
		})
	}
	old := protowire.AppendVarint(protowire.AppendTag(message(1, 0), 3, protowire.VarintType), 1700000000000)
	for name, raw := range map[string][]byte{"double": message(1, 1700000000000), "old varint": old, "no version": message(0, 1700000000000)} {
		a, err := parseMetadata(raw)
		if err != nil || a.State != id || a.Offset != "7" || a.Saved.UnixMilli() != 1700000000000 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if _, err := parseMetadata(message(2, 1)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("unknown version: %v", err)
	}
	if _, err := parseMetadata([]byte{0x0a, 0x01, 0xff}); !errors.Is(err, ErrMalformed) {
		t.Errorf("short id: %v", err)
	}
	if a := DecodeCloudAgent("bc", []byte("***")); !errors.Is(a.Problem, ErrMalformed) {
		t.Errorf("not base64: %v", a.Problem)
	}
}

// TestEveryEdgeOfTheGraphIsWalked names each field once with an id of its own.
func TestEveryEdgeOfTheGraphIsWalked(t *testing.T) {
	var want []blob.ID
	id := func(name string) []byte {
		want = append(want, blob.Sum([]byte(name)))
		return blob.Sum([]byte(name)).Bytes()
	}
	state := func(prefix string) *agentv1.ConversationStateStructure {
		return &agentv1.ConversationStateStructure{
			RootPromptMessagesJson: [][]byte{id(prefix + "1")}, TurnsOld: [][]byte{id(prefix + "2")}, Todos: [][]byte{id(prefix + "3")},
			Summary: id(prefix + "6"), Plan: id(prefix + "7"), Turns: [][]byte{id(prefix + "8"), id(prefix + "8b")},
			SummaryArchive: id(prefix + "11"), FileStates: map[string][]byte{"f": id(prefix + "12")}, SummaryArchives: [][]byte{id(prefix + "13")},
			FileStatesV2:      map[string]*agentv1.FileStateStructure{"f": {Content: id(prefix + "15a"), InitialContent: id(prefix + "15b")}},
			SubagentStateRefs: map[string][]byte{"s": id(prefix + "31")},
			PendingToolCalls:  []string{strings.Repeat("x", 32)},
		}
	}
	outer := state("outer")
	outer.SubagentStates = map[string]*agentv1.SubagentPersistedState{"sub": {ConversationState: state("inner")}}
	cases := []struct {
		kind graph.Kind
		m    proto.Message
	}{
		{graph.State, outer},
		{graph.AgentTurn, &agentv1.AgentConversationTurnStructure{UserMessage: id("u"), Steps: [][]byte{id("s1"), id("s2")}}},
		{graph.Turn, &agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_ShellConversationTurn{
			ShellConversationTurn: &agentv1.ShellConversationTurnStructure{ShellCommand: id("c"), ShellOutput: id("o")}}}},
		{graph.Archive, &agentv1.ConversationSummaryArchive{SummarizedMessages: [][]byte{id("m1"), id("m2")}, SummaryMessage: id("m3")}},
		{graph.UserMessage, &agentv1.UserMessage{ConversationStateBlobId: id("u10"), TextBlobId: id("u18"), RichTextBlobId: id("u19")}},
		{graph.CloudState, &aiserverv1.CloudAgentState{
			PrBody: id("3"), Summary: id("4"), BranchName: id("5"), PrUrl: id("6"), AgentName: id("8"), Config: id("11"),
			OriginalPromptBlobId: id("13"), StartRequestBlobId: id("32"), AdmittedCustomModeStateBlobId: id("52"),
			SynthesisSubagentConfig: &aiserverv1.SynthesisSubagentConfig{OriginalUserPromptBlobId: id("31.2")},
			ConversationState:       &agentv1.ConversationStateStructure{Plan: id("1.7")},
		}},
	}
	got := map[blob.ID]int{}
	for _, c := range cases {
		found, err := refs(c.kind, marshal(t, c.m))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			got[r.ID]++
		}
	}
	for _, w := range want {
		if got[w] != 1 {
			t.Errorf("%s was met %d times, want once", w.Short(), got[w])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d ids met, want %d", len(got), len(want))
	}
}

func TestHostileStates(t *testing.T) {
	deep := []byte{}
	for range 200 {
		inner := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), deep)
		entry := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), inner)
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 16, protowire.BytesType), entry)
	}
	if err := checkState(deep); !errors.Is(err, ErrMalformed) {
		t.Errorf("200 nested subagents: %v", err)
	}
	many := NewState(bytes.Repeat([]byte{0x0a, 0x00}, 100_001), "test")
	if _, err := many.Decode(); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("many empty entries: %v", err)
	}
	if err := checkState([]byte{0x0a, 0x03, 1, 2, 3}); !errors.Is(err, ErrMalformed) {
		t.Errorf("an id of three bytes: %v", err)
	}
}

func TestStateAsObject(t *testing.T) {
	m := &agentv1.ConversationStateStructure{Turns: [][]byte{blob.Sum(nil).Bytes()}}
	object, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseState(object)
	if err != nil || !bytes.Equal(s.Data, marshal(t, m)) || s.Source != "inline object" {
		t.Errorf("parseState = %+v, %v", s, err)
	}
	for _, raw := range []string{`{"turns": 7}`, `[]`, `7`, `{"turns": ["AQID"]}`} {
		if s, err := parseState(json.RawMessage(raw)); err == nil {
			t.Errorf("parseState(%s) = %+v", raw, s)
		}
	}
}

func TestChangesAreStrict(t *testing.T) {
	for _, raw := range []string{
		`[{"modified": ["x"]}]`,
		`[{"original": {"startLineNumber": 0, "endLineNumberExclusive": 1}, "modified": []}]`,
		`[{"original": {"startLineNumber": 3, "endLineNumberExclusive": 2}}]`,
		`[{"original": {"startLineNumber": 5, "endLineNumberExclusive": 6}}, {"original": {"startLineNumber": 2, "endLineNumberExclusive": 3}}]`,
		`[{"original": {"startLineNumber": 1, "endLineNumberExclusive": 1}, "modified": [1]}]`,
		`"text"`,
	} {
		raw = `{"files": [{"uri": "file:///a", "originalModelDiffWrtV0": ` + raw + `}]}`
		if cp, err := DecodeCheckpoint("cp", []byte(raw)); !errors.Is(err, ErrMalformed) {
			t.Errorf("DecodeCheckpoint(%s) = %v, %v", raw, cp, err)
		}
	}
}
