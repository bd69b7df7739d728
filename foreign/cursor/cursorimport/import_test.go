package cursorimport_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint/jsoncheckpoint"
	conv "github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/foreign/cursor/cursorimport"
	"github.com/stet-dev/stet/foreign/cursor/internal/cursortest"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/transcript"
	"github.com/stet-dev/stet/upkeep"
)

const agentID = "bc-22222222-2222-4222-8222-222222222222"

func importAll(t testing.TB, src *cursor.Store, dst cursorimport.Target, opts *cursorimport.Options) cursorimport.Result {
	t.Helper()
	r, err := cursorimport.Import(t.Context(), src, dst, opts)
	if err != nil {
		t.Fatalf("Import(%s): %v", src.Path(), err)
	}
	return r
}

// sound fails if a store has damage, and after a collection too, which must not
// find anything to remove.
func sound(t testing.TB, db *stet.DB, orphans int64) {
	t.Helper()
	for range 2 {
		report, err := db.Check(t.Context(), &upkeep.CheckOptions{ReadData: true})
		if err != nil {
			t.Fatal(err)
		}
		if !report.OK() {
			t.Fatalf("damage: %+v", report.Damage)
		}
		res, err := db.Collect(t.Context(), &upkeep.CollectOptions{Grace: -1})
		if err != nil || res.Removed > orphans {
			t.Fatalf("a collection removed %d blobs, want at most %d; %v", res.Removed, orphans, err)
		}
	}
}

func reasons(r cursorimport.Result) map[string]string {
	out := map[string]string{}
	for _, s := range r.Skipped {
		out[s.Key] += s.Reason
	}
	return out
}

func TestImportOfTheFixture(t *testing.T) {
	want := cursortest.ReadExpectation(t, "../testdata/expected.json")
	src := cursortest.Open(t, "../testdata/state.vscdb", nil)
	db, dst := cursortest.OpenDB(t)
	r := importAll(t, src, dst, nil)
	if r.Conversations != 2 || r.Messages != 4 || r.Checkpoints != 4 || r.Agents != 1 || len(r.Skipped) != 0 {
		t.Errorf("result = %+v", r)
	}
	sound(t, db, 0)
	for _, id := range []string{cursortest.Current, cursortest.Legacy} {
		info, err := db.Conversations().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		data, err := dst.Blobs.Get(t.Context(), info.Root)
		if err != nil || hex.EncodeToString(data) != want.State || info.Turns != 2 {
			t.Errorf("%s: root %s with %d turns, %v", id, info.Root.Short(), info.Turns, err)
		}
		if info.Labels["source"] != "cursor" || info.Labels["source_path"] == "" {
			t.Errorf("%s: labels %v", id, info.Labels)
		}
	}
	for _, text := range want.Live {
		id, err := blob.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dst.Blobs.Get(t.Context(), id); err != nil {
			t.Errorf("%s: %v", want.Blobs[text].Kind, err)
		}
	}
	row, err := dst.Rows.Get(t.Context(), keyspace.AgentMetadata(agentID))
	if err != nil || string(row.Value) != want.Cloud {
		t.Errorf("metadata = %q, %v", row.Value, err)
	}
}

func TestImportKeepsTimesAndMessageHeads(t *testing.T) {
	src := cursortest.Open(t, "../testdata/state.vscdb", nil)
	db, dst := cursortest.OpenDB(t)
	importAll(t, src, dst, nil)
	info, err := db.Conversations().Get(t.Context(), cursortest.Current)
	if err != nil {
		t.Fatal(err)
	}
	if info.Title != "fixture" || info.Created.UnixMilli() != 1700000000000 || info.Updated.Year() != 2023 || info.Workspace != "/w" {
		t.Errorf("info = %+v", info)
	}
	message := "aaaaaaaa-0000-4000-8000-000000000001"
	root, err := db.Conversations().MessageHead(t.Context(), cursortest.Current, message)
	if err != nil || root != info.Root {
		t.Errorf("head of message = %s, %v; want %s", root.Short(), err, info.Root.Short())
	}
	for save, err := range db.Conversations().History(t.Context(), cursortest.Current, nil) {
		if err != nil || save.Kind != conv.KindImport {
			t.Errorf("save = %+v, %v", save, err)
		}
	}
}

func TestImportKeepsCheckpointsAndOriginals(t *testing.T) {
	want := cursortest.ReadExpectation(t, "../testdata/expected.json")
	src := cursortest.Open(t, "../testdata/state.vscdb", nil)
	_, dst := cursortest.OpenDB(t)
	importAll(t, src, dst, nil)
	store := jsoncheckpoint.NewStore(dst.Rows)
	ids := cursortest.Collect(t, store.List(t.Context(), cursortest.Current))
	if d := cmp.Diff([]string{"cp-0", "cp-1", "cp-2", "cp-latest"}, ids); d != "" {
		t.Error(d)
	}
	source, err := cursorimport.ReadSource(t.Context(), dst, cursortest.Current)
	if err != nil {
		t.Fatal(err)
	}
	v0, err := source.Originals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cp, err := store.Get(t.Context(), cursortest.Current, "cp-2")
	if err != nil {
		t.Fatal(err)
	}
	text := cp.Files[0].Text(v0[cp.Files[0].URI.String()].Content)
	if d := cmp.Diff(want.Applied, strings.Split(text, "\n")); d != "" {
		t.Error(d)
	}
	for _, id := range ids {
		raw, err := src.Value(t.Context(), "checkpointId:"+cursortest.Current+":"+id)
		row, rowErr := dst.Rows.Get(t.Context(), keyspace.JSONCheckpoint(cursortest.Current, id))
		if err != nil || rowErr != nil || !bytes.Equal(raw.Data, row.Value) {
			t.Errorf("%s is not what it was: %v, %v", id, err, rowErr)
		}
	}
	// Every row about the conversation is kept as it was.
	for row, err := range source.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		v, err := src.Value(t.Context(), row.Key)
		if err != nil || !bytes.Equal(v.Data, row.Value) {
			t.Errorf("%s is not what it was: %v", row.Key, err)
		}
	}
	if _, err := cursorimport.ReadSource(t.Context(), dst, "nobody"); !errors.Is(err, cursor.ErrNotFound) {
		t.Errorf("source of nobody: %v", err)
	}
}

func jsonl(t testing.TB, db *stet.DB, id string) string {
	t.Helper()
	tr, err := transcript.New(db.Conversations(), db.Blobs()).Conversation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := transcript.Write(t.Context(), &out, tr, transcript.JSONL, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestImportTwiceAddsNothing(t *testing.T) {
	for _, path := range []string{"../testdata/state.vscdb", sdkWithState(t), linesWithState(t)} {
		src := cursortest.Open(t, path, nil)
		_, dst := cursortest.OpenDB(t)
		first := importAll(t, src, dst, nil)
		before := allRows(t, dst.Rows)
		r := importAll(t, src, dst, nil)
		if r.Conversations != 0 || r.Messages != 0 || r.Blobs != 0 || r.Checkpoints != 0 || r.Agents != 0 || len(r.Skipped) != first.Conversations+first.Agents {
			t.Errorf("%s: second result = %+v", path, r)
		}
		for _, s := range r.Skipped {
			if s.Reason != "already imported" || s.Damage {
				t.Errorf("%s: skipped %+v", path, s)
			}
		}
		if d := cmp.Diff(before, allRows(t, dst.Rows)); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
}

func allRows(t testing.TB, rows kv.Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	for row, err := range rows.Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		out[row.Key] = string(row.Value)
	}
	return out
}

func TestDryRunWritesNothing(t *testing.T) {
	src := cursortest.Open(t, "../testdata/state.vscdb", nil)
	_, dst := cursortest.OpenDB(t)
	dry := importAll(t, src, dst, &cursorimport.Options{DryRun: true})
	if rows := allRows(t, dst.Rows); len(rows) != 0 {
		t.Errorf("rows after a dry run: %v", rows)
	}
	r := importAll(t, src, dst, nil)
	if d := cmp.Diff(r, dry); d != "" {
		t.Errorf("the import differs from what the dry run said: %s", d)
	}
}

func TestFilterAndProgress(t *testing.T) {
	src := cursortest.Open(t, "../testdata/state.vscdb", nil)
	db, dst := cursortest.OpenDB(t)
	var told []cursorimport.Progress
	r := importAll(t, src, dst, &cursorimport.Options{
		Conversations: func(h cursor.Header) bool { return h.ID == cursortest.Current },
		Progress:      func(p cursorimport.Progress) { told = append(told, p) },
	})
	if r.Conversations != 1 || r.Agents != 0 || len(told) == 0 || told[0].Current != cursortest.Current || told[0].Total != 3 {
		t.Errorf("result = %+v, told %+v", r, told)
	}
	if _, err := db.Conversations().Get(t.Context(), cursortest.Legacy); !errors.Is(err, conv.ErrNotFound) {
		t.Errorf("an unwanted conversation: %v", err)
	}
}

func TestImportEndsWithItsContext(t *testing.T) {
	src := cursortest.Open(t, "../testdata/state.vscdb", nil)
	_, dst := cursortest.OpenDB(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := cursorimport.Import(ctx, src, dst, &cursorimport.Options{Progress: func(cursorimport.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Import = %v", err)
	}
}

func TestWhatWasContinuedHereStays(t *testing.T) {
	path := cursortest.Copy(t, "../testdata/state.vscdb", "state.vscdb")
	src := cursortest.Open(t, path, nil)
	db, dst := cursortest.OpenDB(t)
	importAll(t, src, dst, nil)
	c, err := db.Conversations().Open(t.Context(), cursortest.Current)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AppendPrompt(t.Context(), []byte(`{"role":"user"}`)); err != nil {
		t.Fatal(err)
	}
	mine, err := c.Save(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	other := cursortest.Create(t, path, "UPDATE cursorDiskKV SET value = json_set(value, '$.name', 'renamed') WHERE key = 'composerData:"+cursortest.Current+"'")
	other.Close()
	r := importAll(t, src, dst, nil)
	if got := reasons(r)[cursortest.Current]; !strings.Contains(got, "continued here") || r.Damaged() != 0 {
		t.Errorf("result = %+v", r)
	}
	if info, err := db.Conversations().Get(t.Context(), cursortest.Current); err != nil || info.Root != mine.Root {
		t.Errorf("root = %s, %v", info.Root.Short(), err)
	}
}

func TestConversationOfTheSameIDStays(t *testing.T) {
	src := cursortest.Open(t, "../testdata/state.vscdb", nil)
	db, dst := cursortest.OpenDB(t)
	if _, err := db.Conversations().Create(t.Context(), conv.Info{ID: cursortest.Current, Title: "mine"}); err != nil {
		t.Fatal(err)
	}
	r := importAll(t, src, dst, nil)
	if r.Conversations != 1 || !strings.Contains(reasons(r)[cursortest.Current], "not imported") {
		t.Errorf("result = %+v", r)
	}
	if info, err := db.Conversations().Get(t.Context(), cursortest.Current); err != nil || info.Title != "mine" || info.Save != 0 {
		t.Errorf("info = %+v, %v", info, err)
	}
}

func TestGrownConversationIsContinued(t *testing.T) {
	path := cursortest.Copy(t, "../testdata/state.vscdb", "state.vscdb")
	src := cursortest.Open(t, path, nil)
	db, dst := cursortest.OpenDB(t)
	importAll(t, src, dst, nil)
	before, err := db.Conversations().Get(t.Context(), cursortest.Current)
	if err != nil {
		t.Fatal(err)
	}
	grown := blob.New([]byte{0x22, 0x02, '{', '}'}) // one pending tool call
	other := cursortest.Create(t, path, "")
	cursortest.Insert(t, other, "agentKv:blob:"+grown.ID.String(), grown.Data)
	cursortest.Insert(t, other, "agentKv:checkpoint:"+cursortest.Current, grown.ID.String())
	other.Close()
	r := importAll(t, src, dst, nil)
	after, err := db.Conversations().Get(t.Context(), cursortest.Current)
	if err != nil || r.Conversations != 1 || after.Root != grown.ID || after.Save <= before.Save {
		t.Errorf("result = %+v, info %+v, %v", r, after, err)
	}
	if after.Updated.Before(time.UnixMilli(1600000000000)) {
		t.Errorf("updated %v", after.Updated)
	}
	sound(t, db, 0)
}

func TestCloudAgentThatRunsHereStays(t *testing.T) {
	path := cursortest.Copy(t, "../testdata/state.vscdb", "state.vscdb")
	src := cursortest.Open(t, path, nil)
	_, dst := cursortest.OpenDB(t)
	importAll(t, src, dst, nil)
	want, err := dst.Rows.Get(t.Context(), keyspace.AgentMetadata(agentID))
	if err != nil {
		t.Fatal(err)
	}
	// Its record is what the first change here makes.
	record, err := proto.Marshal(&stetv1.AgentRecord{Format: 1, Id: agentID, Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := dst.Rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: keyspace.Agent(agentID), Value: record}}}); err != nil {
		t.Fatal(err)
	}
	state := blob.New(nil)
	other := cursortest.Create(t, path, "")
	cursortest.Insert(t, other, "agentKv:blob:"+state.ID.String(), []byte{0})
	cursortest.Insert(t, other, agentID+":cloudAgent:metadata", base64.StdEncoding.EncodeToString(append([]byte{0x0a, 32}, state.ID.Bytes()...)))
	other.Close()
	r := importAll(t, src, dst, nil)
	if why := reasons(r)[agentID+":cloudAgent:metadata"]; r.Agents != 0 || !strings.Contains(why, "continued here") {
		t.Errorf("result = %+v", r)
	}
	if got, err := dst.Rows.Get(t.Context(), want.Key); err != nil || !bytes.Equal(got.Value, want.Value) {
		t.Errorf("metadata = %q, %v", got.Value, err)
	}
}
