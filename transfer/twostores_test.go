package transfer_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
)

// Two stores watch one directory, a third one has the checkpoints of both: those of the
// second that collide with numbers of the first are not in the list of the directory.
// That is no damage, also after retention removed what they collided with.
func TestRetentionAfterAPullFromTwoStores(t *testing.T) {
	ctx := t.Context()
	a, b, both := open(t), open(t), open(t)
	dir := t.TempDir()
	capture := func(db *stet.DB, conversation, content string) *checkpoint.Record {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		w := must[*checkpoint.Workspace](t)(db.Checkpoints().Open(ctx, dir))
		defer w.Close()
		return must[*checkpoint.Result](t)(w.Checkpoint(ctx, checkpoint.Request{Conversation: conversation})).Record
	}
	say(t, a, "of-a", "one")
	say(t, b, "of-b", "one")
	first, second := capture(a, "of-a", "1\n"), capture(a, "of-a", "2\n")
	capture(b, "of-b", "3\n")
	capture(b, "of-b", "4\n")
	last := capture(b, "of-b", "5\n")
	move(t, a, both, nil)
	move(t, b, both, nil)
	healthy(t, both)

	opts := both.CheckpointOptions()
	opts.Now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	aged := checkpoint.New(both.Blobs(), both.Rows(), &opts)
	plan := checkpoint.RetentionPlan{Checkpoints: map[string][]string{first.Workspace: {first.ID, second.ID}}}
	if n := must[int](t)(aged.ApplyRetention(ctx, plan, "test")); n != 2 {
		t.Fatalf("%d checkpoints were forgotten", n)
	}
	healthy(t, both)
	if rec := must[*checkpoint.Record](t)(both.Checkpoints().Get(ctx, last.ID)); rec.Parent == "" {
		t.Error("the last one has no parent: the test shows nothing")
	}
}
