package scenario

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
)

// seen is what a driver was told on its way.
type seen struct {
	Diff     []string `json:"diff"`
	Plan     []string `json:"plan"`
	Rewound  int      `json:"rewound"`
	Undone   int      `json:"undone"`
	Followed []string `json:"followed"`
}

// end is what a server holds afterwards. Ids that are drawn are left out.
type end struct {
	Title       string
	Turns       uint32
	Root        string
	Saves       []string
	Checkpoints []string
	Operations  []string
	Files       map[string]string
	Agent       string
}

// driver does the scenario: a conversation is created and saved twice, with a
// checkpoint after each save; the second is compared with the first, the
// workspace rewound and that undone; an agent writes and is followed to its end.
type driver func(t *testing.T, address, workspace string) seen

// Whatever the language and the protocol, the same calls are told the same and
// leave the same behind.
func TestTheSameScenarioByEveryClient(t *testing.T) {
	want := seen{
		Diff: []string{"a.txt +1 -1", "b.txt +1 -0"}, Plan: []string{"restore a.txt", "delete b.txt"},
		Rewound: 2, Undone: 2, Followed: []string{"one", "two", "three"},
	}
	var ends []end
	var names []string
	for _, d := range []struct {
		name string
		do   driver
	}{{"curl", withCurl}, {"grpcurl", withGRPCurl}, {"typescript", withTypeScript}} {
		t.Run(d.name, func(t *testing.T) {
			_, address := start(t)
			workspace := filepath.Join(t.TempDir(), "work")
			if err := os.Mkdir(workspace, 0o755); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, d.do(t, address, workspace)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			ends = append(ends, readEnd(t, address, workspace))
			names = append(names, d.name)
		})
	}
	if len(ends) == 0 {
		t.Skip("every client is left out, or failed")
	}
	if ends[0].Turns != 2 || len(ends[0].Checkpoints) < 4 || ends[0].Files["a.txt"] != "two\n" {
		t.Fatalf("nothing to compare with: %+v", ends)
	}
	for i := range ends {
		if diff := cmp.Diff(ends[0], ends[i]); diff != "" {
			t.Errorf("%s and %s leave different things behind:\n%s", names[0], names[i], diff)
		}
	}
}

func readEnd(t *testing.T, address, workspace string) end {
	t.Helper()
	ctx := t.Context()
	c := dial(t, address)
	conv, err := c.Conversations().Get(ctx, &stetv1.GetConversationRequest{Id: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	out := end{
		Title: conv.GetConversation().GetTitle(), Turns: conv.GetConversation().GetTurns(),
		Root: hex.EncodeToString(conv.GetConversation().GetRoot()), Files: make(map[string]string),
	}
	history, err := c.Conversations().History(ctx, &stetv1.ConversationHistoryRequest{Id: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range history.GetSaves() {
		out.Saves = append(out.Saves, fmt.Sprintf("%d after %d: %s %s %x", s.GetSeq(), s.GetParent(), s.GetKind(), s.GetMessageId(), s.GetRoot()))
	}
	list, err := c.Checkpoints().List(ctx, &stetv1.ListCheckpointsRequest{Workspace: workspace})
	if err != nil {
		t.Fatal(err)
	}
	for _, cp := range list.GetCheckpoints() {
		out.Checkpoints = append(out.Checkpoints, fmt.Sprintf("%s %q %x %x", cp.GetKind(), cp.GetLabel(), cp.GetTree(), cp.GetRoot()))
	}
	ops, err := c.Checkpoints().Operations(ctx, &stetv1.OperationsRequest{Workspace: workspace})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops.GetOperations() {
		out.Operations = append(out.Operations, op.GetKind())
	}
	entries, err := os.ReadDir(workspace)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(workspace, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out.Files[e.Name()] = string(data)
	}
	agent, err := c.Agents().Get(ctx, "worker")
	if err != nil {
		t.Fatal(err)
	}
	out.Agent = fmt.Sprintf("%s %s", agent.GetName(), agent.GetStatus())
	return out
}

// caller makes calls in JSON. stream returns every message of the answer.
type caller interface {
	call(t *testing.T, method string, request any) json.RawMessage
	stream(t *testing.T, method string, request any) []json.RawMessage
}

type object = map[string]any

// inline is a state with one turn for each text, whole.
func inline(texts ...string) object {
	var turns []object
	for _, s := range texts {
		turns = append(turns, object{"agentConversationTurn": object{"userMessage": object{"text": s, "messageId": "m-" + s}}})
	}
	return object{"turns": turns}
}

// drive does the scenario with a caller.
func drive(t *testing.T, c caller, workspace string) seen {
	t.Helper()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(workspace, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(raw json.RawMessage, into any) {
		t.Helper()
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	}
	const conversations, checkpoints, agents = "stet.v1.ConversationService/", "stet.v1.CheckpointService/", "stet.v1.CloudAgentService/"
	var made struct{ Conversation struct{ Epoch string } }
	parse(c.call(t, conversations+"Create", object{"id": "talk", "title": "scenario", "workspace": workspace, "agent": "scenario"}), &made)
	checkpoint := func(label string) string {
		var made struct{ Checkpoint struct{ ID string } }
		parse(c.call(t, checkpoints+"Create", object{"workspace": workspace, "conversation": "talk", "label": label, "author": "scenario"}), &made)
		return made.Checkpoint.ID
	}
	write("a.txt", "one\n")
	c.call(t, conversations+"Save", object{"id": "talk", "epoch": made.Conversation.Epoch, "inline": inline("hello"), "messageId": "m-hello"})
	first := checkpoint("first")
	write("a.txt", "two\n")
	write("b.txt", "new\n")
	c.call(t, conversations+"Save", object{"id": "talk", "epoch": made.Conversation.Epoch, "inline": inline("hello", "again"), "messageId": "m-again"})
	second := checkpoint("second")

	var out seen
	var diff struct {
		Files []struct {
			Path           string
			Added, Removed int
		}
	}
	parse(c.call(t, checkpoints+"Diff", object{"workspace": workspace, "from": first, "to": second, "statOnly": true}), &diff)
	for _, f := range diff.Files {
		out.Diff = append(out.Diff, fmt.Sprintf("%s +%d -%d", f.Path, f.Added, f.Removed))
	}
	want := object{"ref": first, "workspace": workspace, "conversation": "talk", "files": true, "withConversation": true}
	var plan struct {
		PlanToken string
		Files     []struct{ Path, Action string }
	}
	parse(c.call(t, checkpoints+"PlanRewind", want), &plan)
	for _, f := range plan.Files {
		out.Plan = append(out.Plan, f.Action+" "+f.Path)
	}
	var done struct{ Files int }
	parse(c.call(t, checkpoints+"Rewind", object{"plan": want, "planToken": plan.PlanToken}), &done)
	out.Rewound, done.Files = done.Files, 0
	parse(c.call(t, checkpoints+"Undo", object{"workspace": workspace}), &done)
	out.Undone = done.Files

	c.call(t, agents+"Create", object{"id": "worker", "name": "count", "conversation": "talk"})
	for _, word := range []string{"one", "two", "three"} {
		c.call(t, agents+"AppendUpdate", object{"id": "worker", "idempotencyKey": word, "updates": []object{{"textDelta": object{"text": word}}}})
	}
	c.call(t, agents+"Archive", object{"id": "worker"})
	for _, raw := range c.stream(t, "aiserver.v1.BackgroundComposerService/StreamConversation", object{"bcId": "worker"}) {
		var m struct {
			InteractionUpdateWithOffset struct {
				InteractionUpdate struct{ TextDelta struct{ Text string } }
			}
		}
		parse(raw, &m)
		if text := m.InteractionUpdateWithOffset.InteractionUpdate.TextDelta.Text; text != "" {
			out.Followed = append(out.Followed, text)
		}
	}
	return out
}
