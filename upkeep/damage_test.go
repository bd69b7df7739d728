package upkeep_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/upkeep"
)

// damaged is a store whose rows can be changed below everything that checks them.
type damaged struct {
	*stet.DB
	t    *testing.T
	back stet.Backend
}

// newDamaged makes a store with two conversations, an agent with events, checkpoints
// of a directory, pins and operations; dir is the directory.
func newDamaged(t *testing.T, ring *keyring.Ring) (d damaged, dir string) {
	t.Helper()
	ctx := t.Context()
	back := memBackend()
	d = damaged{openOver(t, back, ring), t, back}
	for _, id := range []string{"bad", "good"} {
		c := got(d.Conversations().Create(ctx, conversation.Info{ID: id, Title: id}))
		for _, text := range []string{"one", "two", "three"} {
			must(t, c.AppendTurn(ctx, userTurn(t, id+" "+text)))
			got(c.Save(ctx, &conversation.SaveOptions{MessageID: "m-" + text}))
		}
	}
	got(d.Conversations().Pin(ctx, "kept", "good", 2))
	agents := d.Agents()
	for _, id := range []string{"agent-bad", "agent-good"} {
		got(agents.Create(ctx, cloudagent.Spec{ID: id}))
		got(agents.SetStatus(ctx, id, cloudagent.StatusExpired, nil))
	}
	dir = t.TempDir()
	w := got(d.Checkpoints().Open(ctx, dir))
	defer w.Close()
	for _, text := range []string{"first", "second", "third"} {
		must(t, os.WriteFile(filepath.Join(dir, "file.txt"), []byte(text+"\n"), 0o644))
		got(w.Checkpoint(ctx, checkpoint.Request{Conversation: "good", Label: text}))
	}
	latest := got(w.Resolve(ctx, "c3", ""))
	must(t, d.Checkpoints().Pin(ctx, "mine", latest.ID, "me"))
	return d, dir
}

// flip changes a bit in the stored value of a row.
func (d damaged) flip(key string) {
	d.t.Helper()
	row := got(d.back.Rows.Get(d.t.Context(), key))
	value := slices.Clone(row.Value)
	value[len(value)-1] ^= 1
	must(d.t, d.back.Rows.Commit(d.t.Context(), &kv.Batch{Set: []kv.Set{{Key: key, Value: value}}}))
}

// lose removes a row.
func (d damaged) lose(key string) {
	d.t.Helper()
	got(d.back.Rows.Get(d.t.Context(), key))
	must(d.t, d.back.Rows.Commit(d.t.Context(), &kv.Batch{Delete: []string{key}}))
}

func userTurn(t *testing.T, text string) conversation.Turn {
	t.Helper()
	return got(conversation.NewTurn(&agentv1.UserMessage{Text: text}))
}

// withAndWithoutKey runs a test with and without a key.
func withAndWithoutKey(t *testing.T, test func(*testing.T, *keyring.Ring)) {
	t.Run("plain", func(t *testing.T) { test(t, nil) })
	t.Run("encrypted", func(t *testing.T) { test(t, newRing(t)) })
}

// A row that is lost is missed by those that belong to it, whichever it is.
func TestLostRowsAreMissed(t *testing.T) {
	withAndWithoutKey(t, func(t *testing.T, ring *keyring.Ring) {
		sample, dir := newDamaged(t, ring)
		if report := got(sample.Check(t.Context(), nil)); !report.OK() {
			t.Fatalf("before: %v", report.Damage)
		}
		ws := checkpoint.WorkspaceID(got(filepath.EvalSymlinks(dir)))
		second := got(got(sample.Checkpoints().Open(t.Context(), dir)).Resolve(t.Context(), "c2", ""))
		info := got(sample.Conversations().Get(t.Context(), "bad"))
		for _, key := range []string{
			keyspace.Conversation("bad"), keyspace.Head("bad"), keyspace.ByTime(info.Updated.UnixMilli(), "bad"), keyspace.Save("good", 2),
			keyspace.Checkpoint(second.ID), keyspace.WorkspaceCheckpoint(ws, second.ID), keyspace.ConversationCheckpoint("good", second.ID),
			keyspace.Workspace(ws), keyspace.Agent("agent-bad"), keyspace.AgentEvent("agent-bad", 1), keyspace.Operation(1),
		} {
			t.Run(key, func(t *testing.T) {
				if keyspace.Operations().Contains(key) {
					must(t, sample.Checkpoints().Log(t.Context(), &checkpoint.Operation{Kind: "test"}))
				}
				row := got(sample.back.Rows.Get(t.Context(), key))
				sample.lose(key)
				report := got(sample.Check(t.Context(), nil))
				if report.OK() || !slices.ContainsFunc(report.Damage, func(d upkeep.Damage) bool { return strings.Contains(d.Err.Error(), key) }) {
					t.Errorf("row %q is not missed: %v", key, report.Damage)
				}
				must(t, sample.back.Rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: key, Value: row.Value}}}))
			})
		}
		if report := got(sample.Check(t.Context(), nil)); !report.OK() {
			t.Fatalf("after: %v", report.Damage)
		}
	})
}

// A rewind does not leave the agent's work alone because the list lacks the
// checkpoint that saw it.
func TestRewindRefusesAListWithoutItsCheckpoint(t *testing.T) {
	withAndWithoutKey(t, func(t *testing.T, ring *keyring.Ring) {
		ctx := t.Context()
		d, dir := newDamaged(t, ring)
		w := got(d.Checkpoints().Open(ctx, dir))
		defer w.Close()
		latest := got(w.Resolve(ctx, "c3", ""))
		key := keyspace.WorkspaceCheckpoint(w.ID(), latest.ID)
		for name, flipped := range map[string]string{
			"its id":          key[:len(key)-1] + string(key[len(key)-1]^1),
			"its workspace":   strings.Replace(key, w.ID(), string(w.ID()[0]^1)+w.ID()[1:], 1),
			"its kind of row": "stet:ckpt-of-wr" + strings.TrimPrefix(key, "stet:ckpt-of-ws"),
		} {
			t.Run(name, func(t *testing.T) {
				row := got(d.back.Rows.Get(ctx, key))
				must(t, d.back.Rows.Commit(ctx, &kv.Batch{Delete: []string{key}, Set: []kv.Set{{Key: flipped, Value: row.Value}}}))
				plan, err := w.Plan(ctx, checkpoint.RewindRequest{To: "c1", Scope: checkpoint.FilesOnly})
				if !kv.Damaged(err) {
					t.Errorf("got the plan %+v and %v, want damage", plan, err)
				}
				if report := got(d.Check(ctx, nil)); report.OK() {
					t.Error("the check finds nothing")
				}
				must(t, d.back.Rows.Commit(ctx, &kv.Batch{Delete: []string{flipped}, Set: []kv.Set{{Key: key, Value: row.Value}}}))
				got(w.Plan(ctx, checkpoint.RewindRequest{To: "c1", Scope: checkpoint.FilesOnly}))
			})
		}
	})
}

// Whatever goes over many conversations passes over a damaged one and names it, and
// a collection removes nothing that it may need.
func TestDamageStaysWhereItIs(t *testing.T) {
	withAndWithoutKey(t, func(t *testing.T, ring *keyring.Ring) {
		ctx := t.Context()
		for _, key := range []string{keyspace.Save("bad", 3), keyspace.Conversation("bad")} {
			t.Run(key, func(t *testing.T) {
				d, _ := newDamaged(t, ring)
				reachable := got(d.Conversations().SaveAt(ctx, "bad", 1)).Root
				must(t, d.Blobs().Put(ctx, blob.New([]byte("garbage"))))
				d.flip(key)
				page := got(d.Conversations().List(ctx, nil))
				if len(page.Conversations) != 1 || page.Conversations[0].ID != "good" || len(page.Damaged) != 1 || page.Damaged[0].ID != "bad" {
					t.Errorf("list: %+v", page)
				}
				result := got(d.Collect(ctx, &upkeep.CollectOptions{Grace: -1}))
				if keyspace.AllSaves().Contains(key) && (len(result.Unreadable) == 0 || result.Removed > 0 || result.Withheld == 0) {
					t.Errorf("collect: %+v", result)
				}
				if has := got(d.Blobs().Has(ctx, reachable)); !has[0] {
					t.Error("a state of the damaged conversation is gone")
				}
				index := got(d.Search(ctx))
				for range 2 { // again: what is damaged is named each time
					if stats := got(index.Update(ctx)); !slices.Contains(stats.Damaged, "bad") {
						t.Errorf("search: %+v", stats)
					}
				}
				for _, r := range got(d.Conversations().Retainable(ctx, nil)) {
					if r.Conversation == "bad" && keyspace.AllSaves().Contains(key) {
						t.Errorf("a policy sees save %d of the damaged one", r.Save.Seq)
					}
				}
				must(t, d.Conversations().Delete(ctx, "bad", nil))
				if page := got(d.Conversations().List(ctx, nil)); len(page.Damaged) != 0 || len(page.Conversations) != 1 {
					t.Errorf("after it was removed: %+v", page)
				}
				if report := got(d.Check(ctx, nil)); !report.OK() {
					t.Errorf("after it was removed: %v", report.Damage)
				}
				if err := d.Conversations().Delete(ctx, "bad", nil); !errors.Is(err, conversation.ErrNotFound) {
					t.Errorf("again: %v", err)
				}
			})
		}
	})
}

func TestADamagedAgentIsListedAsSuch(t *testing.T) {
	d, _ := newDamaged(t, nil)
	d.flip(keyspace.Agent("agent-bad"))
	listed := got(d.Agents().List(t.Context(), cloudagent.Page{}))
	if len(listed.Agents) != 1 || listed.Agents[0].ID != "agent-good" || len(listed.Damaged) != 1 || listed.Damaged[0].ID != "agent-bad" {
		t.Errorf("got %+v", listed)
	}
	first := got(d.Agents().List(t.Context(), cloudagent.Page{Limit: 1}))
	rest := got(d.Agents().List(t.Context(), cloudagent.Page{Limit: 1, After: first.Next}))
	if len(first.Damaged) != 1 || len(rest.Agents) != 1 || rest.Next != "" {
		t.Errorf("by pages: %+v, %+v", first, rest)
	}
}

// One checkpoint that cannot be read keeps no other from being found.
func TestADamagedCheckpointIsPassedOver(t *testing.T) {
	ctx := t.Context()
	d, dir := newDamaged(t, nil)
	w := got(d.Checkpoints().Open(ctx, dir))
	defer w.Close()
	d.flip(keyspace.Checkpoint(got(w.Resolve(ctx, "c2", "")).ID))
	if rec := got(w.Resolve(ctx, "c1", "")); rec.Label != "first" {
		t.Errorf("c1 is %+v", rec)
	}
	if _, err := w.Resolve(ctx, "c2", ""); !kv.Damaged(err) {
		t.Errorf("c2: %v, want damage", err)
	}
	if _, err := w.Plan(ctx, checkpoint.RewindRequest{To: "c1", Scope: checkpoint.FilesOnly}); !kv.Damaged(err) {
		t.Errorf("a rewind over it: %v, want damage", err)
	}
}
