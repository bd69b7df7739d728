package scenario

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/cloudagent"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// say appends texts to the log of an agent.
func say(t *testing.T, db *stet.DB, agent string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		update := &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: text}}}
		if _, err := db.Agents().AppendUpdate(t.Context(), agent, nil, update); err != nil {
			t.Fatal(err)
		}
	}
}

// followUntil runs 'stet follow' until it has printed a number of events, and kills it.
func (l *laptop) followUntil(events int, args ...string) {
	l.t.Helper()
	cmd := l.cmd(append([]string{"follow", "--json"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; n < events && lines.Scan(); n++ {
	}
	if err := lines.Err(); err != nil {
		l.t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // says that it was killed
}

// TestKilledFollowersGoOn follows an agent of a server with processes that are killed. The
// copy has every event once, and is there without the server.
func TestKilledFollowersGoOn(t *testing.T) {
	ctx := t.Context()
	db, address := start(t)
	if _, err := db.Agents().Create(ctx, cloudagent.Spec{ID: "a1", Name: "fix the tests"}); err != nil {
		t.Fatal(err)
	}
	l := newLaptop(t, "STET_TOKEN="+token)
	var want []string
	for round := range 4 {
		for i := range 10 {
			text := fmt.Sprintf("%d.%d ", round, i)
			say(t, db, "a1", text)
			want = append(want, text)
		}
		if round == 0 {
			// The place before the first event, so that all of them are in the log.
			l.followUntil(3, "a1", "--from", address+"/")
		} else {
			l.followUntil(round, "a1")
		}
	}
	state := &aiserverv1.CloudAgentState{ConversationState: &agentv1.ConversationStateStructure{}}
	if _, err := db.Agents().SaveState(ctx, "a1", state, nil, nil); err != nil {
		t.Fatal(err)
	}
	l.run(0, "follow", "a1", "--once")
	l.run(0, "follow", "a1", "--once")
	if err := db.Agents().Archive(ctx, "a1"); err != nil {
		t.Fatal(err)
	}
	l.run(0, "follow", "a1")

	out, _ := l.run(0, "ls", "--agents", "--json")
	var agent struct {
		Name, Status, Origin, State string
		OriginOffset                string `json:"origin_offset"`
	}
	if err := json.Unmarshal([]byte(out), &agent); err != nil {
		t.Fatal(err)
	}
	there, err := db.Agents().Get(ctx, "a1")
	if err != nil {
		t.Fatal(err)
	}
	if agent.Name != "fix the tests" || agent.Status != "archived" || agent.Origin != address || agent.OriginOffset != there.Head.String() || agent.State != there.State.String() {
		t.Errorf("got %+v, want that of %+v", agent, there)
	}
	if out, _ := l.run(0, "ls", "--agents"); !strings.Contains(out, "copy of "+address) {
		t.Errorf("ls: %s", out)
	}
	if _, said := l.run(0, "ls"); !strings.Contains(said, "stet ls --agents") {
		t.Errorf("ls without conversations: %s", said)
	}
	if got := l.copied(t, "a1"); strings.Join(got, "") != strings.Join(want, "") {
		t.Errorf("the copy says %q, want %q", got, want)
	}
	l.run(0, "tail", "a1", "--once")
	other, elsewhere := start(t)
	if _, err := other.Agents().Create(ctx, cloudagent.Spec{ID: "a1"}); err != nil {
		t.Fatal(err)
	}
	if _, said := l.run(4, "follow", "a1", "--from", elsewhere); !strings.Contains(said, "copy of the one at "+address) {
		t.Errorf("from another server: %s", said)
	}
	l.run(0, "fsck")
	l.run(0, "rm", "-y", "a1")
	l.run(3, "follow", "a1")
}

// copied returns the texts of a copied agent's log, read without the server.
func (l *laptop) copied(t *testing.T, agent string) (texts []string) {
	t.Helper()
	db, err := stet.Open(t.Context(), l.dir+"/store", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for row, err := range db.Rows().Scan(t.Context(), keyspace.AgentEvents(agent, 0), kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		rec, update := new(stetv1.AgentEventRecord), new(agentv1.InteractionUpdate)
		if err := errors.Join(proto.Unmarshal(row.Value[8:], rec), proto.Unmarshal(rec.GetUpdate(), update)); err != nil {
			t.Fatal(err)
		}
		if text := update.GetTextDelta().GetText(); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}
