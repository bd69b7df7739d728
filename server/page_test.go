package server_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server"
)

// pageBench is a bench with a client for the page's service.
func pageBench(t *testing.T) (*bench, stetv1connect.PageServiceClient) {
	t.Helper()
	http, base := dial(t, start(t, nil), token).HTTP()
	b := newBenchAt(t, http, base)
	return b, stetv1connect.NewPageServiceClient(http, base)
}

func TestOverviewSumsUpWhatAgentsChanged(t *testing.T) {
	b, page := pageBench(t)
	rows := call(t, page.Overview, &stetv1.OverviewRequest{}).GetRows()
	if len(rows) != 1 {
		t.Fatalf("%d rows, want 1", len(rows))
	}
	r := rows[0]
	if r.GetId() != b.conv || r.GetTitle() != "shop" || r.GetTurns() != 2 || r.GetCheckpoints() != 2 || r.GetFiles() != 2 || r.GetAdded() != 2 || r.GetRemoved() != 1 {
		t.Errorf("row %v", r)
	}
}

func TestTimelineKnowsWhatWasLeftBehind(t *testing.T) {
	b, page := pageBench(t)
	line := func() []*stetv1.TimelineEntry {
		return call(t, page.Timeline, &stetv1.TimelineRequest{Conversation: b.conv}).GetEntries()
	}
	entries := line()
	if len(entries) != 2 || entries[0].GetCheckpoint().GetId() != b.after.GetId() || !entries[0].GetCurrent() || entries[0].GetGone() {
		t.Fatalf("before the rewind: %v", entries)
	}
	if got := entries[0].GetAsk(); got != "add a price" {
		t.Errorf("asked %q", got)
	}
	m, plan := b.plan(nil)
	call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: m, PlanToken: plan.GetPlanToken()})
	for _, e := range line() {
		switch e.GetCheckpoint().GetId() {
		case b.after.GetId():
			if !e.GetGone() || e.GetGoneMs() == 0 {
				t.Errorf("the checkpoint after the turn stands: %v", e)
			}
		case b.before.GetId():
			if e.GetGone() || !e.GetCurrent() {
				t.Errorf("the target does not stand: %v", e)
			}
		default:
			if !e.GetQuiet() {
				t.Errorf("a checkpoint of the rewind is loud: %v", e)
			}
		}
	}
	call(t, b.checkpoints.Undo, &stetv1.UndoRequest{Workspace: b.dir})
	for _, e := range line() {
		if e.GetCheckpoint().GetId() == b.after.GetId() && e.GetGone() {
			t.Error("after the undo the checkpoint is still left behind")
		}
	}
	refuse(t, page.Timeline, &stetv1.TimelineRequest{Conversation: "none"}, connect.CodeNotFound)
}

// A turn that was taken out by itself stands, so the entry of the rewind says which one it was.
func TestTimelineNamesTheTurnThatIsOut(t *testing.T) {
	b, page := pageBench(t)
	m := &stetv1.PlanRewindRequest{OnlyTurn: 1, Workspace: b.dir, Conversation: b.conv}
	plan := call(t, b.checkpoints.PlanRewind, m)
	call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: m, PlanToken: plan.GetPlanToken()})
	for _, e := range call(t, page.Timeline, &stetv1.TimelineRequest{Conversation: b.conv}).GetEntries() {
		want := ""
		if e.GetCheckpoint().GetKind() == "rewind" {
			want = "rewind of turn 1"
		}
		if e.GetOperation() != want {
			t.Errorf("%s: operation %q, want %q", e.GetName(), e.GetOperation(), want)
		}
	}
}

func TestTimelineSumsUpTurns(t *testing.T) {
	b, page := pageBench(t)
	b.write("cart.go", "one\n2 < 3\n3\n")
	b.take(&stetv1.CreateCheckpointRequest{Side: stetv1.Side_SIDE_AFTER, Turn: 1, MessageId: "m1"})
	entries := call(t, page.Timeline, &stetv1.TimelineRequest{Conversation: b.conv}).GetEntries()
	total := entries[0].GetTurnTotal()
	if total.GetFiles() != 3 || total.GetAdded() != 3 || total.GetRemoved() != 2 || total.GetCheckpoints() != 3 {
		t.Errorf("total %v", total)
	}
	for _, e := range entries[1:] {
		if e.GetTurnTotal() != nil {
			t.Errorf("%s has a total, too: %v", e.GetName(), e.GetTurnTotal())
		}
	}
}

func TestTimelineNamesForks(t *testing.T) {
	b, page := pageBench(t)
	fork := call(t, b.conversations.Fork, &stetv1.ForkConversationRequest{Id: b.conv, Seq: 1, Title: "another way"}).GetConversation()
	forks := call(t, page.Timeline, &stetv1.TimelineRequest{Conversation: b.conv}).GetForks()
	if len(forks) != 1 || forks[0].GetId() != fork.GetId() || forks[0].GetTitle() != "another way" {
		t.Errorf("forks %v", forks)
	}
}

// forget removes checkpoints as retention does, which leaves young ones alone.
func forget(t *testing.T, db *stet.DB, ids ...string) {
	t.Helper()
	b := &kv.Batch{}
	for _, id := range ids {
		rec, err := db.Checkpoints().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		b.Delete = append(b.Delete, keyspace.Checkpoint(id), keyspace.WorkspaceCheckpoint(rec.Workspace, id), keyspace.ConversationCheckpoint(rec.Conversation, id))
	}
	if err := db.Rows().Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// A timeline does not hide that checkpoints are gone, and those of others in the
// same directory are not taken for gone.
func TestTimelineShowsWhatIsNoLongerKept(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	b, page := newBenchAt(t, http, base), stetv1connect.NewPageServiceClient(http, base)
	ids := []string{b.before.GetId(), b.after.GetId()} // c1, c2
	take := func(conv string) {
		b.write("cart.go", "version "+strconv.Itoa(len(ids)))
		m := &stetv1.CreateCheckpointRequest{Workspace: b.dir, Conversation: conv, Turn: uint32(len(ids)), Side: stetv1.Side_SIDE_AFTER}
		ids = append(ids, call(t, b.checkpoints.Create, m).GetCheckpoint().GetId())
	}
	for range 4 {
		take(b.conv) // c3 to c6
	}
	take("other") // c7
	take(b.conv)  // c8
	take(b.conv)  // c9
	line := func() string {
		var names []string
		for _, e := range call(t, page.Timeline, &stetv1.TimelineRequest{Conversation: b.conv}).GetEntries() {
			if c := e.GetCheckpoint(); c.GetKind() == "forgotten" {
				names = append(names, "("+c.GetLabel()+")")
				continue
			}
			names = append(names, e.GetName())
		}
		return strings.Join(names, " ")
	}
	same := func(want string) {
		t.Helper()
		if got := line(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	same("c9 c8 c6 c5 c4 c3 c2 c1")
	forget(t, db, ids[2], ids[3], ids[5]) // c3, c4, c6
	same("c9 c8 (1 checkpoint no longer kept) c5 (2 checkpoints no longer kept) c2 c1")
	forget(t, db, ids[0], ids[1])
	same("c9 c8 (1 checkpoint no longer kept) c5 (4 checkpoints no longer kept)")
	forget(t, db, ids[4], ids[6])
	same("c9 c8 (7 checkpoints no longer kept)")
}

// A rewind to a checkpoint that is no longer kept left behind what came after it,
// and nothing else.
func TestTimelineAfterARewindToWhatIsGone(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	b, page := newBenchAt(t, http, base), stetv1connect.NewPageServiceClient(http, base)
	b.write("cart.go", "later")
	later := b.take(&stetv1.CreateCheckpointRequest{Side: stetv1.Side_SIDE_AFTER, Turn: 2})
	m := &stetv1.PlanRewindRequest{Workspace: b.dir, Conversation: b.conv, Ref: b.after.GetId()}
	call(t, b.checkpoints.Rewind, &stetv1.RewindRequest{Plan: m, PlanToken: call(t, b.checkpoints.PlanRewind, m).GetPlanToken()})
	forget(t, db, b.after.GetId())
	for _, e := range call(t, page.Timeline, &stetv1.TimelineRequest{Conversation: b.conv}).GetEntries() {
		switch e.GetCheckpoint().GetId() {
		case b.before.GetId():
			if e.GetGone() {
				t.Error("what came before the target counts as left behind")
			}
		case later.GetId():
			if !e.GetGone() {
				t.Error("what came after the target stands")
			}
		}
	}
}

// One checkpoint that cannot be read is named and hides no other.
func TestTimelineNamesDamage(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	b, page := newBenchAt(t, http, base), stetv1connect.NewPageServiceClient(http, base)
	row := kv.Set{Key: keyspace.Checkpoint(b.before.GetId()), Value: []byte("\xff")}
	if err := db.Engine().Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{row}}); err != nil {
		t.Fatal(err)
	}
	res := call(t, page.Timeline, &stetv1.TimelineRequest{Conversation: b.conv})
	if len(res.GetDamaged()) != 1 || res.GetDamaged()[0].GetId() != b.before.GetId() || res.GetDamaged()[0].GetDetail() == "" {
		t.Errorf("damaged: %v", res.GetDamaged())
	}
	if len(res.GetEntries()) != 1 || res.GetEntries()[0].GetCheckpoint().GetId() != b.after.GetId() {
		t.Errorf("entries: %v", res.GetEntries())
	}
}

func TestGraphBeginsNearest(t *testing.T) {
	b, page := pageBench(t)
	root := call(t, b.conversations.Get, &stetv1.GetConversationRequest{Id: b.conv}).GetConversation().GetRoot()
	g := call(t, page.Graph, &stetv1.GraphRequest{Id: root})
	if len(g.GetNodes()) < 4 || g.GetNodes()[0].GetKind() != "state" || g.GetNodes()[0].GetRefs() != 2 || g.GetTruncated() {
		t.Fatalf("graph %v", g)
	}
	depth := uint32(0)
	for _, n := range g.GetNodes() {
		if n.GetDepth() < depth || n.GetSize() == 0 || n.GetError() != "" {
			t.Errorf("node %v", n)
		}
		depth = n.GetDepth()
	}
	for _, e := range g.GetEdges() {
		if int(e.GetFrom()) >= len(g.GetNodes()) || int(e.GetTo()) >= len(g.GetNodes()) || e.GetField() == "" {
			t.Errorf("edge %v", e)
		}
	}
	if small := call(t, page.Graph, &stetv1.GraphRequest{Id: root, Limit: 2}); len(small.GetNodes()) != 2 || !small.GetTruncated() {
		t.Errorf("at most two nodes: %v", small)
	}
	missing := call(t, page.Graph, &stetv1.GraphRequest{Id: make([]byte, 32)})
	if len(missing.GetNodes()) != 1 || missing.GetNodes()[0].GetError() != "missing" {
		t.Errorf("a blob that is not there: %v", missing)
	}
	refuse(t, page.Graph, &stetv1.GraphRequest{Id: []byte("short")}, connect.CodeInvalidArgument)
}

func TestStorageAddsUp(t *testing.T) {
	b, page := pageBench(t)
	r := call(t, page.Storage, &stetv1.StorageRequest{})
	var sum, brought int64
	for _, k := range r.GetKinds() {
		sum += k.GetBytes()
	}
	for _, c := range r.GetConversations() {
		brought += c.GetBytes()
	}
	if sum != r.GetStoredBytes() || brought != sum || sum == 0 {
		t.Errorf("kinds %d, conversations %d, stored %d", sum, brought, r.GetStoredBytes())
	}
	if r.GetLogicalBytes() <= r.GetContentBytes() || r.GetDiskBytes() == 0 || r.GetPartial() || r.GetUnreferenced().GetBytes() < 0 {
		t.Errorf("report %v", r)
	}
	points := r.GetPoints()
	if len(points) == 0 || len(points[len(points)-1].GetBytes()) != len(r.GetKinds()) {
		t.Fatalf("points %v", points)
	}
	if c := r.GetConversations()[0]; c.GetId() != b.conv || c.GetTitle() != "shop" {
		t.Errorf("biggest %v", c)
	}
}

// The states of agents have no place over time; the collector keeps them all the same.
func TestStorageCountsAgentsAsReferenced(t *testing.T) {
	http, base := dial(t, start(t, nil), token).HTTP()
	agents := stetv1connect.NewCloudAgentServiceClient(http, base)
	call(t, agents.Create, &stetv1.CreateAgentRequest{Id: "a1"})
	call(t, agents.SaveState, &stetv1.SaveAgentStateRequest{Id: "a1", State: &aiserverv1.CloudAgentState{}})
	r := call(t, stetv1connect.NewPageServiceClient(http, base).Storage, &stetv1.StorageRequest{})
	if r.GetUnreferenced().GetCount() != 0 || r.GetStoredBytes() == 0 {
		t.Errorf("report %v", r)
	}
}

// unreachable is a remote that cannot be reached.
type unreachable struct{ blob.Store }

func (unreachable) Has(context.Context, ...blob.ID) ([]bool, error) {
	return nil, errors.New("no route")
}

func (unreachable) Put(context.Context, ...blob.Blob) error { return errors.New("no route") }

// The page shows what the remote lacks and why, also if the rest of the report is older.
func TestStorageShowsTheBacklogOfTheRemote(t *testing.T) {
	ctx := t.Context()
	db, err := stet.Open(ctx, t.TempDir(), &stet.Options{Remote: &stet.Remote{Name: "http://remote.example", Blobs: unreachable{memblob.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	page := stetv1connect.NewPageServiceClient(http, base)
	if r := call(t, page.Storage, &stetv1.StorageRequest{}).GetRemote(); r.GetUrl() != "http://remote.example" || r.GetBlobs() != 0 {
		t.Errorf("an empty store: %v", r)
	}
	if err := db.Blobs().Put(ctx, blob.New([]byte("waits"))); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Mirror().Send(ctx, nil); err == nil {
		t.Fatal("the remote was reached")
	}
	if r := call(t, page.Storage, &stetv1.StorageRequest{}).GetRemote(); r.GetBlobs() != 1 || r.GetBytes() == 0 || !strings.Contains(r.GetError(), "no route") {
		t.Errorf("got %v", r)
	}
	http, base = dial(t, start(t, nil), token).HTTP()
	if r := call(t, stetv1connect.NewPageServiceClient(http, base).Storage, &stetv1.StorageRequest{}); r.GetRemote() != nil {
		t.Errorf("without a remote: %v", r.GetRemote())
	}
}

func TestFollowSaysWhetherItGoesOn(t *testing.T) {
	http, base := dial(t, start(t, nil), token).HTTP()
	agents := stetv1connect.NewCloudAgentServiceClient(http, base)
	page := stetv1connect.NewPageServiceClient(http, base)
	call(t, agents.Create, &stetv1.CreateAgentRequest{Id: "a1"})
	shell := &agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{Args: &agentv1.ShellArgs{Command: "ls"}}}}
	last := call(t, agents.AppendUpdate, &stetv1.AppendUpdateRequest{Id: "a1", Updates: []*agentv1.InteractionUpdate{
		text("one \x1b[31mred"),
		{Message: &agentv1.InteractionUpdate_ToolCallStarted{ToolCallStarted: &agentv1.ToolCallStartedUpdate{CallId: "c", ToolCall: shell}}},
	}}).GetOffsetKey()
	// read returns the events that are not beats, as kinds, until it has n.
	read := func(offset string, n int) []*stetv1.FollowResponse {
		t.Helper()
		stream, err := page.Follow(t.Context(), &stetv1.FollowRequest{Id: "a1", OffsetKey: offset})
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		var got []*stetv1.FollowResponse
		for len(got) < n && stream.Receive() {
			if stream.Msg().GetKind() != "beat" && stream.Msg().GetKind() != "status" {
				got = append(got, stream.Msg())
			}
		}
		if len(got) < n {
			t.Fatalf("got %v, %v", got, stream.Err())
		}
		return got
	}
	first := read("", 2)
	if first[0].GetKind() != "text" || strings.Contains(first[0].GetText(), "\x1b") || first[0].GetSeq() != 1 {
		t.Errorf("first %v", first[0])
	}
	if first[1].GetKind() != "tool" || first[1].GetPath() != "ls" || first[1].GetStatus() != "running" || first[1].GetCallId() != "c" {
		t.Errorf("second %v", first[1])
	}
	call(t, agents.AppendUpdate, &stetv1.AppendUpdateRequest{Id: "a1", Updates: []*agentv1.InteractionUpdate{text("three")}})
	again := read(last, 2)
	if again[0].GetKind() != "resumed" || again[0].GetSeq() != 2 || again[1].GetText() != "three" {
		t.Errorf("resumed %v", again)
	}
	if fresh := read("0000000000000009-123", 1); fresh[0].GetKind() != "restarted" {
		t.Errorf("an offset of another history: %v", fresh)
	}
}

func TestTranscriptsAsHTML(t *testing.T) {
	b, _ := pageBench(t)
	b.turns("**bold** <img src=x onerror=alert(1)>\n\n```go\nfunc f() {}\n```")
	plain := call(t, b.conversations.Transcript, &stetv1.TranscriptRequest{Id: b.conv}).GetMessages()[0]
	rich := call(t, b.conversations.Transcript, &stetv1.TranscriptRequest{Id: b.conv, Html: true}).GetMessages()[0]
	if plain.GetHtml() != "" {
		t.Errorf("nobody asked for %q", plain.GetHtml())
	}
	for _, want := range []string{"<strong>bold</strong>", "&lt;img", `<span class="k">func</span>`} {
		if !strings.Contains(rich.GetHtml(), want) {
			t.Errorf("%q is missing in %q", want, rich.GetHtml())
		}
	}
	if strings.Contains(rich.GetHtml(), "<img") {
		t.Errorf("hostile: %q", rich.GetHtml())
	}
}

func TestDiffsAreHighlighted(t *testing.T) {
	b, _ := pageBench(t)
	b.write("page.go", "package page\n\n// \"<b>\"\n")
	diff := call(t, b.checkpoints.Diff, &stetv1.DiffRequest{From: b.after.GetId(), Workspace: b.dir, Paths: []string{"page.go"}})
	lines := diff.GetFiles()[0].GetHunks()[0].GetLines()
	if got := lines[0].GetHtml(); got != `<span class="k">package</span> page` {
		t.Errorf("first line %q", got)
	}
	if got := lines[2].GetHtml(); got != `<span class="c">// &#34;&lt;b&gt;&#34;</span>` {
		t.Errorf("third line %q", got)
	}
	// A page of many files asks for the lines first.
	diff = call(t, b.checkpoints.Diff, &stetv1.DiffRequest{From: b.after.GetId(), Workspace: b.dir, Paths: []string{"page.go"}, Plain: true})
	lines = diff.GetFiles()[0].GetHunks()[0].GetLines()
	if got := lines[0].GetHtml() + lines[2].GetHtml(); got != "package page// &#34;&lt;b&gt;&#34;" {
		t.Errorf("plain lines %q", got)
	}
}
