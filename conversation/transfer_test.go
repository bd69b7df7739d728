package conversation_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/kv"
)

func TestTransferSendsOnlyWhatIsLacking(t *testing.T) {
	ctx := context.Background()
	from, to := newFixture(t), newFixture(t)
	a := must(from.Create(ctx, conversation.Info{ID: "c"}))
	saves := from.grow(t, a, "1", "2")
	send := func(root blob.ID) (sent int) {
		_, blobs, err := from.Export(ctx, root, func(ctx context.Context, ids []blob.ID) ([]bool, error) { return to.blobs.Has(ctx, ids...) })
		check(t, err)
		counted := func(yield func(blob.Blob, error) bool) {
			for b, err := range blobs {
				sent++
				if !yield(b, err) {
					return
				}
			}
		}
		check(t, to.Import(ctx, root, counted))
		return sent
	}
	if n := send(saves[1].Root); n != 5 {
		t.Errorf("sent %d blobs, want 5", n)
	}
	b := must(to.Create(ctx, conversation.Info{ID: "c"}))
	check(t, b.SetRoot(ctx, saves[1].Root))
	saved := must(b.Save(ctx, &conversation.SaveOptions{Kind: conversation.KindImport}))
	if saved.Root != saves[1].Root || saved.Turns != 2 {
		t.Errorf("imported as %+v", saved)
	}
	next := from.grow(t, a, "3")
	if n := send(next[0].Root); n != 3 {
		t.Errorf("sent %d blobs for one more turn, want 3", n)
	}
	check(t, b.SetRoot(ctx, next[0].Root))
	must(b.Save(ctx, nil))
	to.expectTexts(t, "c", "1", "2", "3")
	to.grow(t, b, "4")
	to.expectTexts(t, "c", "1", "2", "3", "4")
}

func TestImportRefusesLiesAndHoles(t *testing.T) {
	ctx := context.Background()
	f := newFixture(t)
	root := blob.New(bytes.Join([][]byte{{0x42, 0x20}, make([]byte, 32)}, nil)) // one turn with id 0
	lie := func(yield func(blob.Blob, error) bool) { yield(blob.Blob{ID: root.ID, Data: []byte("other")}, nil) }
	if err := f.Import(ctx, root.ID, lie); !errors.Is(err, blob.ErrMismatch) {
		t.Errorf("lie: %v, want ErrMismatch", err)
	}
	hole := func(yield func(blob.Blob, error) bool) { yield(root, nil) }
	var missing *kv.MissingBlobsError
	if err := f.Import(ctx, root.ID, hole); !errors.As(err, &missing) {
		t.Errorf("hole: %v, want missing blobs", err)
	}
}
