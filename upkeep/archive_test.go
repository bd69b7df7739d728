package upkeep_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation"
	aiserverv1 "github.com/stet-dev/stet/gen/aiserver/v1"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/keyring"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/upkeep"
	"github.com/stet-dev/stet/workspace"
)

// seen is everything that a reader can learn about a conversation.
func seen(t testing.TB, db *stet.DB, id string) []string {
	t.Helper()
	ctx := t.Context()
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	info, err := db.Conversations().Get(ctx, id)
	must(t, err)
	say("%+v", info)
	for save, err := range db.Conversations().History(ctx, id, nil) {
		must(t, err)
		state, err := db.Conversations().HydrateRoot(ctx, save.Root, nil)
		must(t, err)
		say("%+v %d turns", save, len(state.Turns))
		for _, turn := range state.Turns {
			say("%s %x", turn.Structure.ID(), turn.UserMessage.Bytes())
		}
	}
	for m, err := range db.Conversations().MessageHeads(ctx, id) {
		must(t, err)
		say("%+v", m)
	}
	for rec, err := range db.Checkpoints().ListConversation(ctx, id) {
		must(t, err)
		say("checkpoint %s %s", rec.ID, rec.Tree)
		must(t, workspace.Refs(ctx, db.Blobs(), rec.Tree, func(id blob.ID) bool {
			data, err := db.Blobs().Get(ctx, id)
			must(t, err)
			say("%s %d", id, len(data))
			return true
		}))
	}
	agent, err := db.Agents().Get(ctx, id)
	must(t, err)
	say("%+v", agent)
	state, err := db.Agents().State(ctx, id, agent.State)
	must(t, err)
	say("%d", state.NumPriorInteractionUpdates)
	for row, err := range db.Rows().Scan(ctx, keyspace.AgentEvents(id, 0), kv.ScanOptions{}) {
		must(t, err)
		say("%s %x", row.Key, row.Value)
	}
	return out
}

func same(t testing.TB, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d answers, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("answer %d is\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
}

func gc(t testing.TB, db *stet.DB) upkeep.CollectResult {
	t.Helper()
	result, err := db.Collect(t.Context(), &upkeep.CollectOptions{Grace: -1})
	must(t, err)
	if result.Missing+result.Damaged > 0 {
		t.Fatalf("the collector finds %+v", result)
	}
	return result
}

func TestArchive(t *testing.T) {
	for name, ring := range map[string]*keyring.Ring{"plain": nil, "encrypted": newRing(t)} {
		t.Run(name, func(t *testing.T) {
			b := memBackend()
			db, dir := openOver(t, b, ring), t.TempDir()
			talk(t, db, "c1", 12)
			talk(t, db, "c2", 3)
			capture(t, db, dir, "c1", "one")
			capture(t, db, dir, "c1", "two")
			capture(t, db, dir, "c2", "three")
			gc(t, db)
			want, other := seen(t, db, "c1"), seen(t, db, "c2")
			before := b.Blobs.(*memblob.Store).Len()

			info, err := db.Archive(t.Context(), "c1")
			must(t, err)
			t.Logf("%+v of %d blobs", info, before)
			if live := gc(t, db).Live; live >= before-12 {
				t.Errorf("%d of %d blobs are left", live, before)
			}
			sound(t, db)
			for _, node := range []*stet.DB{db, openOver(t, b, ring)} {
				same(t, seen(t, node, "c1"), want)
				same(t, seen(t, node, "c2"), other)
				sound(t, node)
			}
			if _, err := db.Archive(t.Context(), "c1"); !errors.Is(err, pack.ErrArchived) {
				t.Errorf("archiving twice: %v", err)
			}
			page, err := db.Agents().List(t.Context(), cloudagent.Page{})
			list := page.Agents
			if err != nil || len(list) != 2 {
				t.Errorf("%d agents, %v", len(list), err)
			}
			must(t, openOver(t, b, ring).Unarchive(t.Context(), "c1"))
			gc(t, db)
			sound(t, db)
			same(t, seen(t, openOver(t, b, ring), "c1"), want)
			same(t, seen(t, db, "c1"), want)
			wantObjects(t, b, 0)
		})
	}
}

func wantObjects(t testing.TB, b stet.Backend, want int) {
	t.Helper()
	n := 0
	must(t, b.Objects.ListObjects(t.Context(), "", "", func(blob.ObjectInfo) error { n++; return nil }))
	if n != want {
		t.Errorf("%d objects in the bucket, want %d", n, want)
	}
}

// Whatever changes a archived conversation brings it back, and leans on nothing
// that only a pack has.
func TestChangingWhatIsArchived(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, db *stet.DB, dir string){
		"save": func(t *testing.T, db *stet.DB, _ string) {
			c, err := db.Conversations().Open(t.Context(), "c1")
			must(t, err)
			must(t, addTurn(t.Context(), c, "and one more"))
		},
		"rewind": func(t *testing.T, db *stet.DB, _ string) {
			c, err := db.Conversations().Open(t.Context(), "c1")
			must(t, err)
			_, err = c.Rewind(t.Context(), 2, nil)
			must(t, err)
		},
		"fork": func(t *testing.T, db *stet.DB, _ string) {
			_, err := db.Conversations().Fork(t.Context(), "c1", 2, conversation.Info{ID: "fork"})
			must(t, err)
			gc(t, db)
			must(t, db.Conversations().Delete(t.Context(), "c1", nil))
		},
		"pin": func(t *testing.T, db *stet.DB, _ string) {
			_, err := db.Conversations().Pin(t.Context(), "mark", "c1", 3)
			must(t, err)
		},
		"checkpoint in another conversation": func(t *testing.T, db *stet.DB, dir string) {
			capture(t, db, dir, "c2", "again")
		},
		"checkpoint": func(t *testing.T, db *stet.DB, dir string) { capture(t, db, dir, "c1", "again") },
		"append to the agent": func(t *testing.T, db *stet.DB, _ string) {
			_, err := db.Agents().SetStatus(t.Context(), "c1", cloudagent.StatusArchived, nil)
			must(t, err)
		},
		"state of the agent": func(t *testing.T, db *stet.DB, _ string) {
			_, err := db.Agents().SaveState(t.Context(), "c1", &aiserverv1.CloudAgentState{NumPriorInteractionUpdates: 8}, nil, nil)
			must(t, err)
		},
		"delete": func(t *testing.T, db *stet.DB, _ string) {
			must(t, db.Conversations().Delete(t.Context(), "c1", nil))
			if _, err := db.Conversations().Get(t.Context(), "c1"); !errors.Is(err, conversation.ErrNotFound) {
				t.Errorf("a deleted conversation: %v", err)
			}
		},
		"delete the agent": func(t *testing.T, db *stet.DB, _ string) {
			must(t, db.Agents().Delete(t.Context(), "c1"))
			if _, err := db.Agents().Get(t.Context(), "c1"); !errors.Is(err, cloudagent.ErrNotFound) {
				t.Errorf("a deleted agent: %v", err)
			}
		},
		"create again": func(t *testing.T, db *stet.DB, _ string) {
			if _, err := db.Agents().Create(t.Context(), cloudagent.Spec{ID: "c1"}); !errors.Is(err, cloudagent.ErrExists) {
				t.Errorf("an agent is made twice: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ring := range []*keyring.Ring{nil, newRing(t)} {
				b := memBackend()
				db, dir := openOver(t, b, ring), t.TempDir()
				talk(t, db, "c2", 2)
				talk(t, db, "c1", 5)
				capture(t, db, dir, "c2", "one")
				capture(t, db, dir, "c1", "two")
				_, err := db.Archive(t.Context(), "c1")
				must(t, err)
				gc(t, db)
				other := openOver(t, b, ring)
				change(t, other, dir)
				gc(t, other)
				sound(t, other)
				wantObjects(t, b, 0)
				for range other.Archived(t.Context()) {
					t.Error("it is still archived")
				}
				seen(t, db, "c2")
			}
		})
	}
}

// What does not touch the archived rows leaves them where they are.
func TestWhatLeavesAnArchiveAlone(t *testing.T) {
	b := memBackend()
	db := openOver(t, b, nil)
	c, err := db.Conversations().Create(t.Context(), conversation.Info{ID: "c1"})
	must(t, err)
	for i := range 4 {
		must(t, addTurn(t.Context(), c, fmt.Sprint("turn ", i)))
	}
	_, err = db.Archive(t.Context(), "c1")
	must(t, err)
	gc(t, db)
	must(t, db.Conversations().SetTitle(t.Context(), "c1", "a title"))
	page, err := db.Conversations().List(t.Context(), nil)
	if err != nil || len(page.Conversations) != 1 || page.Conversations[0].Save != 4 || page.Conversations[0].Title != "a title" {
		t.Errorf("%+v, %v", page, err)
	}
	wantObjects(t, b, 1)
	// Without checkpoints and agent it is removed unread.
	must(t, db.Conversations().Delete(t.Context(), "c1", nil))
	wantObjects(t, b, 0)
	n := 0
	for row, err := range b.Rows.Scan(t.Context(), kv.Range{}, kv.ScanOptions{}) {
		must(t, err)
		if row.Key != keyspace.Changed("c1") && !keyspace.Prefix("stet:setting:").Contains(row.Key) {
			t.Errorf("row %q is left", row.Key)
		}
		n++
	}
	if n > 3 { // one of them says that the conversation was changed
		t.Errorf("%d rows are left", n)
	}
}

// TestFilingLeavesArchivedConversations lists archived conversations of a store without
// filters by workspace: they are not brought back for that.
func TestFilingLeavesArchivedConversations(t *testing.T) {
	db := openOver(t, memBackend(), nil)
	ctx := t.Context()
	for i := range 5 {
		c, err := db.Conversations().Create(ctx, conversation.Info{ID: fmt.Sprint("c", i), Workspace: "/a"})
		must(t, err)
		must(t, addTurn(ctx, c, "hello"))
	}
	res, err := db.ArchiveIdle(ctx, &upkeep.ArchiveOptions{IdleFor: -1})
	if err != nil || res.Archived != 5 {
		t.Fatalf("%+v, %v", res, err)
	}
	must(t, db.Rows().Commit(ctx, &kv.Batch{Delete: []string{keyspace.Setting("filters")}, DeleteRange: []kv.Range{keyspace.AllConversationsOf()}}))
	must(t, db.Conversations().FileAll(ctx, nil))
	page, err := db.Conversations().List(ctx, &conversation.ListOptions{Workspace: "/a"})
	if err != nil || len(page.Conversations) != 5 {
		t.Errorf("listed %v, %v", page.Conversations, err)
	}
	must(t, db.Conversations().Delete(ctx, "c3", nil))
	n := 0
	for _, err := range db.Archived(ctx) {
		must(t, err)
		n++
	}
	if n != 4 {
		t.Errorf("%d are archived, want 4", n)
	}
	report, err := db.Check(ctx, nil)
	if err != nil || !report.OK() {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestArchiveIdle(t *testing.T) {
	b := memBackend()
	db := openOver(t, b, nil)
	ctx := t.Context()
	old := time.Now().Add(-100 * 24 * time.Hour)
	for i := range 300 {
		at := old.Add(time.Duration(i) * time.Minute)
		if i >= 280 {
			at = time.Now()
		}
		store := conversation.New(db.Blobs(), db.Rows(), &conversation.Options{Now: func() time.Time { return at }})
		c, err := store.Create(ctx, conversation.Info{ID: fmt.Sprintf("c%03d", i)})
		must(t, err)
		if i != 5 { // nothing was ever said in this one
			must(t, addTurn(ctx, c, "hello"))
		}
	}
	_, err := db.Agents().Create(ctx, cloudagent.Spec{ID: "c279"}) // just now
	must(t, err)
	dry, err := db.ArchiveIdle(ctx, &upkeep.ArchiveOptions{DryRun: true})
	if err != nil || dry.Archived != 278 || dry.Skipped != 1 {
		t.Errorf("would archive %+v, %v, want 278", dry, err)
	}
	var ids []string
	opts := &upkeep.ArchiveOptions{Limit: 100, Progress: func(i pack.Info) { ids = append(ids, i.ID) }}
	for range 4 {
		_, err := db.ArchiveIdle(ctx, opts)
		must(t, err)
	}
	if len(ids) != 278 || !slices.IsSorted(ids) || slices.Contains(ids, "c279") || slices.Contains(ids, "c290") {
		t.Errorf("archived %d: %v", len(ids), ids)
	}
	n := 0
	for _, err := range db.Archived(ctx) {
		must(t, err)
		n++
	}
	if n != 278 {
		t.Errorf("%d are archived, want 278", n)
	}
	must(t, db.Unarchive(ctx, "c100"))
	for _, o := range []struct {
		opts upkeep.ArchiveOptions
		want int
	}{{upkeep.ArchiveOptions{}, 0}, {upkeep.ArchiveOptions{All: true}, 1}, {upkeep.ArchiveOptions{IdleFor: -1}, 21}} {
		res, err := db.ArchiveIdle(ctx, &o.opts)
		if err != nil || res.Archived != o.want {
			t.Errorf("%+v archived %+v, %v, want %d", o.opts, res, err, o.want)
		}
	}
	plain := memBackend()
	plain.Objects = nil
	if _, err := openOver(t, plain, nil).ArchiveIdle(ctx, nil); !errors.Is(err, upkeep.ErrNoBucket) {
		t.Errorf("without a bucket: %v", err)
	}
}

// One that is damaged stays as it is, and others are archived.
func TestArchiveIdlePassesDamage(t *testing.T) {
	b := memBackend()
	db := openOver(t, b, nil)
	for _, id := range []string{"c1", "c2", "c3"} {
		talk(t, db, id, 2)
	}
	rec := capture(t, db, t.TempDir(), "c2", "text")
	generation, err := b.Inventory.Begin(t.Context())
	must(t, err)
	_, err = b.Inventory.Sweep(t.Context(), generation, blob.SweepOptions{Live: func(id blob.ID) bool { return id != rec.Tree }})
	must(t, err)
	if err := db.CheckArchive(t.Context(), "c2"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("what is damaged could be archived: %v", err)
	}
	for _, dry := range []bool{true, false} {
		res, err := db.ArchiveIdle(t.Context(), &upkeep.ArchiveOptions{IdleFor: -1, DryRun: dry})
		if err != nil || res.Archived != 2 || res.Skipped != 1 || len(res.Damaged) != 1 || res.Damaged[0].ID != "c2" {
			t.Errorf("dry run %t: %+v, %v, want 2 archived and the damaged one skipped", dry, res, err)
		}
	}
	if _, err := db.Archive(t.Context(), "c2"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("archiving what is damaged: %v", err)
	}
	for info, err := range db.Archived(t.Context()) {
		if err != nil || info.ID == "c2" {
			t.Errorf("%+v is archived, %v", info, err)
		}
	}
	wantObjects(t, b, 2)
}

// A checkpoint that cannot be read keeps its conversation from being archived, and no other.
func TestArchiveIdlePassesADamagedCheckpoint(t *testing.T) {
	b := memBackend()
	db := openOver(t, b, nil)
	for _, id := range []string{"c1", "c2", "c3"} {
		talk(t, db, id, 2)
	}
	rec := capture(t, db, t.TempDir(), "c2", "text")
	must(t, b.Rows.Commit(t.Context(), &kv.Batch{Set: []kv.Set{{Key: keyspace.Checkpoint(rec.ID), Value: []byte("damaged")}}}))
	res, err := db.ArchiveIdle(t.Context(), &upkeep.ArchiveOptions{IdleFor: -1})
	if err != nil || res.Archived != 2 || len(res.Damaged) != 1 || res.Damaged[0].ID != "c2" {
		t.Errorf("%+v, %v, want 2 archived and the damaged one named", res, err)
	}
}
