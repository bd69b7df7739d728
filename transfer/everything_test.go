package transfer_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/document"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/thread"
	"github.com/stet-dev/stet/transfer"
)

// allRows returns every row of a store, without what is only of this store: settings,
// marks, the writer of a conversation, the nonce of a workspace, and whether a
// checkpoint was received.
func allRows(t *testing.T, db *stet.DB) map[string]string {
	t.Helper()
	rows := make(map[string]string)
	for row, err := range db.Rows().Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		value := row.Value
		switch {
		case strings.HasPrefix(row.Key, "stet:setting:"), strings.HasPrefix(row.Key, "stet:mirrored:"):
			continue
		case keyspace.Conversations().Contains(row.Key):
			value = without(t, value, new(stetv1.ConversationRecord), func(r *stetv1.ConversationRecord) { r.Epoch, r.Writer = 0, nil })
		case keyspace.Workspaces().Contains(row.Key):
			value = without(t, value, new(stetv1.WorkspaceRecord), func(r *stetv1.WorkspaceRecord) { r.Nonce, r.CreatedAtMs, r.Turns = nil, 0, nil })
		case keyspace.Checkpoints().Contains(row.Key):
			value = without(t, value, new(stetv1.CheckpointRecord), func(r *stetv1.CheckpointRecord) { r.Received = false })
		}
		rows[row.Key] = string(value)
	}
	return rows
}

func without[M proto.Message](t *testing.T, value []byte, into M, clear func(M)) []byte {
	t.Helper()
	if err := proto.Unmarshal(value, into); err != nil {
		t.Fatal(err)
	}
	clear(into)
	return must[[]byte](t)(proto.MarshalOptions{Deterministic: true}.Marshal(into))
}

// full fills a store with everything that it can hold.
type full struct {
	t     *testing.T
	db    *stet.DB
	dir   string
	agent string
}

func newFull(t *testing.T) *full {
	t.Helper()
	f := &full{t: t, db: open(t), dir: filepath.Join(t.TempDir(), "work")}
	say(t, f.db, "talk", "one", "two")
	f.imported("talk")
	agent := must[cloudagent.Agent](t)(f.db.Agents().Create(t.Context(), cloudagent.Spec{Name: "fix the tests"}))
	f.agent = agent.ID
	first := f.capture("alone", "")
	f.capture("in a turn", "talk")
	f.capture("alone again", "")
	must[conversation.Pin](t)(f.db.Conversations().Pin(t.Context(), "good", "talk", 1))
	if err := f.db.Checkpoints().Pin(t.Context(), "start", first.ID, "me"); err != nil {
		t.Fatal(err)
	}
	f.work()
	return f
}

// imported leaves rows as an import does: a JSON checkpoint, and its source under a
// message head of its own.
func (f *full) imported(id string) {
	f.t.Helper()
	raw := must[[]byte](f.t)(proto.Marshal(&agentv1.ConversationStateStructure{ReadPaths: []string{"the source of " + id}}))
	source := blob.New(raw)
	if err := f.db.Blobs().Put(f.t.Context(), source); err != nil {
		f.t.Fatal(err)
	}
	err := f.db.Rows().Commit(f.t.Context(), &kv.Batch{Refs: []blob.ID{source.ID}, Set: []kv.Set{
		{Key: keyspace.MessageHead(id, "cursor:source"), Value: []byte(source.ID.String())},
		{Key: keyspace.JSONCheckpoint(id, "k1"), Value: []byte(`{"files":[]}`)},
	}})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *full) capture(content, of string) *checkpoint.Record {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(f.dir, 0o755), os.WriteFile(filepath.Join(f.dir, "a.txt"), []byte(content), 0o644)); err != nil {
		f.t.Fatal(err)
	}
	w := must[*checkpoint.Workspace](f.t)(f.db.Checkpoints().Open(f.t.Context(), f.dir))
	defer w.Close()
	return must[*checkpoint.Result](f.t)(w.Checkpoint(f.t.Context(), checkpoint.Request{Conversation: of, Label: content})).Record
}

// work adds an event to the agent, an entry to the log of operations and a frame to a
// thread, and a document.
func (f *full) work() {
	f.t.Helper()
	// Two stores that append the same text in the same millisecond have the same event.
	update := &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: rand.Text()}}}
	if _, err := f.db.Agents().AppendUpdate(f.t.Context(), f.agent, nil, update); err != nil {
		f.t.Fatal(err)
	}
	if err := f.db.Checkpoints().Log(f.t.Context(), &checkpoint.Operation{Kind: checkpoint.OpForget, Author: rand.Text(), Description: "forgot"}); err != nil {
		f.t.Fatal(err)
	}
	frame := thread.NewFrame{
		Key: thread.Key{Thread: "trip", ID: rand.Text()}, Body: thread.Value{Type: "json", Data: []byte(strings.Repeat(rand.Text(), 30))},
		Versions: map[string]string{"city": "1"}, Values: map[string]thread.Value{"city": {Type: "json", Data: []byte(`"Oslo"`)}},
	}
	doc := document.Batch{Changes: []document.Change{{Name: rand.Text(), Set: &document.New{Data: []byte(strings.Repeat(rand.Text(), 30))}}}}
	if _, err := f.db.Documents().Commit(f.t.Context(), "notes", doc); err != nil {
		f.t.Fatal(err)
	}
	err := errors.Join(f.db.Threads().Put(f.t.Context(), frame), f.db.Threads().PutWrites(f.t.Context(), frame.Key, "task", "", []thread.Write{{Channel: "city", Value: frame.Body}}))
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestEverythingIsABackup compares the two stores row by row, at the first time and
// after the source went on.
func TestEverythingIsABackup(t *testing.T) {
	f, b := newFull(t), open(t)
	all := &transfer.Options{Everything: true}
	report := move(t, f.db, b, all)
	if report.Agents != 1 || report.Pins != 2 || report.Checkpoints != 2 || report.Operations == 0 || report.Missing != 0 || len(report.Left) != 0 {
		t.Errorf("report: %+v", report)
	}
	compareStores(t, f.db, b)
	healthy(t, b)

	again := move(t, f.db, b, all)
	if again.Agents+again.Pins+again.Checkpoints+again.Operations+again.Blobs != 0 || len(again.Left) != 0 {
		t.Errorf("the second time: %+v", again)
	}
	f.work()
	f.capture("later", "")
	say(t, f.db, "talk", "three")
	move(t, f.db, b, all)
	compareStores(t, f.db, b)
	healthy(t, b)
}

func compareStores(t *testing.T, a, b *stet.DB) {
	t.Helper()
	if diff := cmp.Diff(allRows(t, a), allRows(t, b)); diff != "" {
		t.Errorf("the stores differ (- source, + target):\n%s", diff)
	}
	for key, value := range allRows(t, a) {
		if !strings.HasSuffix(key, ":cursor%3Asource") {
			continue
		}
		id := must[blob.ID](t)(blob.ParseID(value))
		must[[]byte](t)(b.Blobs().Get(t.Context(), id))
	}
}

// TestAConversationBringsItsImport moves one conversation by its name.
func TestAConversationBringsItsImport(t *testing.T) {
	f, b := newFull(t), open(t)
	report := move(t, f.db, b, nil, "talk")
	if got := report.Conversations[0].Rows; got != 2 {
		t.Errorf("%d rows came along, want the JSON checkpoint and the source", got)
	}
	rows := allRows(t, b)
	for _, key := range []string{keyspace.JSONCheckpoint("talk", "k1"), keyspace.MessageHead("talk", "cursor:source")} {
		if _, ok := rows[key]; !ok {
			t.Errorf("%s did not come along", key)
		}
	}
}

// TestEverythingLeavesWhatTheTargetHas has a target that went on by itself.
func TestEverythingLeavesWhatTheTargetHas(t *testing.T) {
	f, b := newFull(t), open(t)
	all := &transfer.Options{Everything: true}
	move(t, f.db, b, all)
	other := &full{t: t, db: b, dir: f.dir, agent: f.agent}
	other.work()
	f.work()
	before := allRows(t, b)
	report := move(t, f.db, b, all)
	if len(report.Left) != 2 {
		t.Errorf("left: %q, want the agent and the log", report.Left)
	}
	after := allRows(t, b)
	for key, value := range before {
		if strings.HasPrefix(key, "stet:event:") || strings.HasPrefix(key, "stet:op:") || strings.HasPrefix(key, "stet:agent:") {
			if after[key] != value {
				t.Errorf("%s was changed", key)
			}
		}
	}
	healthy(t, b)
	if _, err := transfer.Run(t.Context(), side(f.db), side(b), []string{"talk"}, all); !errors.Is(err, transfer.ErrNotAll) {
		t.Errorf("everything of one conversation: %v", err)
	}
}

// TestEverythingBringsRowsWithoutAConversation has rows that fsck reports: a backup has
// them too.
func TestEverythingBringsRowsWithoutAConversation(t *testing.T) {
	f, b := newFull(t), open(t)
	f.imported("nobody")
	move(t, f.db, b, &transfer.Options{Everything: true})
	compareStores(t, f.db, b)
}

// A pin is copied under its own workspace; the target's pin of that name in the workspace
// stays and is named, in whichever form it is stored.
func TestPinsOfTwoProjects(t *testing.T) {
	f, b := newFull(t), open(t)
	all := &transfer.Options{Everything: true}
	move(t, f.db, b, all)
	workspace := checkpoint.WorkspaceID(must[string](t)(filepath.EvalSymlinks(f.dir)))
	first := must[*checkpoint.Record](t)(f.db.Checkpoints().Pinned(t.Context(), workspace, "start"))
	second := f.capture("another", "")
	f.dir = filepath.Join(t.TempDir(), "other")
	other := f.capture("of another project", "")
	for _, id := range []string{second.ID, other.ID} {
		if err := f.db.Checkpoints().Pin(t.Context(), "start", id, "me"); err != nil {
			t.Fatal(err)
		}
	}
	for _, form := range []string{"its own", "shared"} {
		t.Run(form, func(t *testing.T) {
			if form == "shared" {
				old := must[[]byte](t)(proto.Marshal(&stetv1.CheckpointPin{Format: 1, Name: "start", Checkpoint: first.ID, TimeMs: 1}))
				err := b.Rows().Commit(t.Context(), &kv.Batch{
					Delete: []string{keyspace.CheckpointPin("start", workspace)},
					Set:    []kv.Set{{Key: keyspace.SharedCheckpointPin("start"), Value: old}},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			report := move(t, f.db, b, all)
			if !slices.Contains(report.Left, "pin start") {
				t.Errorf("left: %q, want the pin", report.Left)
			}
			for id, in := range map[string]string{first.ID: workspace, other.ID: other.Workspace} {
				if got, err := b.Checkpoints().Pinned(t.Context(), in, "start"); err != nil || got.ID != id {
					t.Errorf("pin in %s: %v, %v; want %s", in, got, err, id)
				}
			}
			healthy(t, b)
		})
	}
}
