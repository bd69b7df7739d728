package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/transfer"
)

// partsOf returns a conversation as it is sent to a store: what it lacks.
func partsOf(t *testing.T, from, to transfer.Side, id string) (parts []transfer.Part, err error) {
	t.Helper()
	_, lacks, err := transfer.Needed(t.Context(), from, to, id, nil)
	if err != nil {
		return nil, err
	}
	err = transfer.Send(t.Context(), from, id, lacks, func(p transfer.Part) error {
		wire, err := transfer.ParsePart(p.Wire())
		parts = append(parts, wire)
		return err
	})
	return parts, err
}

// arrive takes parts and finishes.
func arrive(t *testing.T, to *stet.DB, id string, opts *transfer.Options, parts []transfer.Part) (transfer.Moved, error) {
	t.Helper()
	in := transfer.Receive(side(to), id, opts)
	defer in.Close()
	for _, p := range parts {
		if err := in.Take(t.Context(), p); err != nil {
			return transfer.Moved{}, err
		}
	}
	return in.Finish(t.Context())
}

// withFiles is a store with a conversation, a large file and a checkpoint.
func withFiles(t *testing.T) *stet.DB {
	t.Helper()
	db := open(t)
	say(t, db, "talk", "one", "two", "three")
	dir := filepath.Join(t.TempDir(), "work")
	large := bytes.Repeat([]byte("a line of a large file\n"), 100_000)
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "large"), large, 0o644), os.WriteFile(filepath.Join(dir, "empty"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	w := must[*checkpoint.Workspace](t)(db.Checkpoints().Open(t.Context(), dir))
	defer w.Close()
	must[*checkpoint.Result](t)(w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "talk"}))
	return db
}

func TestAConversationArrivesInParts(t *testing.T) {
	ctx := t.Context()
	a, b := withFiles(t), open(t)
	parts := must[[]transfer.Part](t)(partsOf(t, side(a), side(b), "talk"))
	moved := must[transfer.Moved](t)(arrive(t, b, "talk", nil, parts))
	if moved.Status != transfer.Created || moved.Saves != 3 || moved.Checkpoints != 1 {
		t.Errorf("got %+v", moved)
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, said(t, b, "talk")); diff != "" {
		t.Error(diff)
	}
	want := must[conversation.Info](t)(a.Conversations().Get(ctx, "talk"))
	if got := must[conversation.Info](t)(b.Conversations().Get(ctx, "talk")); got.Root != want.Root || got.Save != want.Save {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for rec, err := range b.Checkpoints().ListConversation(ctx, "talk") {
		if err != nil || !rec.Received {
			t.Errorf("checkpoint %+v, %v", rec, err)
		}
	}
	healthy(t, b)
	// Run finds nothing left to do.
	if r := move(t, a, b, nil); r.Blobs != 0 || r.Conversations[0].Status != transfer.Current || r.Conversations[0].Checkpoints+r.Conversations[0].Rows != 0 {
		t.Errorf("there was something left: %+v", r)
	}

	// Continued here, then on both sides.
	say(t, a, "talk", "four")
	again := must[[]transfer.Part](t)(partsOf(t, side(a), side(b), "talk"))
	if n := pieces(again); n >= pieces(parts) {
		t.Errorf("%d pieces were sent for one more turn, %d for all", n, pieces(parts))
	}
	if moved := must[transfer.Moved](t)(arrive(t, b, "talk", nil, again)); moved.Status != transfer.Updated || moved.Saves != 1 {
		t.Errorf("got %+v", moved)
	}
	say(t, a, "talk", "mine")
	say(t, b, "talk", "theirs")
	_, lacks, err := transfer.Needed(ctx, side(a), side(b), "talk", &transfer.Options{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	var both []transfer.Part
	if err := transfer.Send(ctx, side(a), "talk", lacks, func(p transfer.Part) error { both = append(both, p); return nil }); err != nil {
		t.Fatal(err)
	}
	if moved := must[transfer.Moved](t)(arrive(t, b, "talk", nil, both)); moved.Status != transfer.Diverged {
		t.Errorf("got %+v", moved)
	}
	if moved := must[transfer.Moved](t)(arrive(t, b, "talk", &transfer.Options{Force: true}, both)); moved.Status != transfer.Forced {
		t.Errorf("got %+v", moved)
	}
	if got := said(t, b, "talk"); got[len(got)-1] != "mine" {
		t.Errorf("the head is %q", got)
	}
	healthy(t, b)
}

func pieces(parts []transfer.Part) (n int) {
	for _, p := range parts {
		n += len(p.Pieces)
	}
	return n
}

// A sender is gone after any part. Nothing of the conversation shows, and what has arrived
// is not sent again.
func TestAnInterruptedArrivalIsRepeated(t *testing.T) {
	a, b := withFiles(t), open(t)
	all := must[[]transfer.Part](t)(partsOf(t, side(a), side(b), "talk"))
	for n := range all {
		in := transfer.Receive(side(b), "talk", nil)
		for _, p := range all[:n] {
			if err := in.Take(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		in.Close()
		if left := leftOf(t, b, "talk"); len(left) > 0 {
			t.Fatalf("after %d of %d parts: %q", n, len(all), left)
		}
		healthy(t, b)
	}
	rest := must[[]transfer.Part](t)(partsOf(t, side(a), side(b), "talk"))
	if pieces(rest) >= pieces(all) {
		t.Errorf("%d pieces are sent again, of %d", pieces(rest), pieces(all))
	}
	must[transfer.Moved](t)(arrive(t, b, "talk", nil, rest))
	if diff := cmp.Diff([]string{"one", "two", "three"}, said(t, b, "talk")); diff != "" {
		t.Error(diff)
	}
	healthy(t, b)
}

// Poison that arrives in parts is refused as Run refuses it, before anything is written.
func TestPoisonThatArrivesIsRefused(t *testing.T) {
	for name, spoil := range poisons() {
		t.Run(name, func(t *testing.T) {
			from, at := source(t)
			to := open(t)
			rows, bad, _ := spoil(t, from, at)
			spoiled := side(from)
			spoiled.Rows = hostile{from.Rows(), rows}
			// The sender does not look at what it sends.
			var parts []transfer.Part
			take := func(p transfer.Part) error { parts = append(parts, p); return nil }
			if err := transfer.Rows(t.Context(), side(from), "bad", func(rows []kv.Row) error { return take(transfer.Part{Rows: rows}) }); err != nil {
				t.Fatal(err)
			}
			for key, value := range rows {
				take(transfer.Part{Rows: []kv.Row{{Key: key, Value: value}}})
			}
			var ids []blob.ID
			for id := range kept(t, from) {
				ids = append(ids, id)
			}
			if err := transfer.SendBlobs(t.Context(), side(from), ids, take); err != nil {
				t.Fatal(err)
			}
			if _, err := arrive(t, to, "bad", nil, parts); !errors.Is(err, kv.ErrInvalidBatch) {
				t.Errorf("got %v, want %v", err, kv.ErrInvalidBatch)
			}
			if left := leftOf(t, to, bad, at.ID); len(left) > 0 {
				t.Errorf("rows that were left behind: %q", left)
			}
			readable(t, to)
		})
	}
}

func TestWhatDoesNotArriveAsAWholeIsRefused(t *testing.T) {
	a := withFiles(t)
	say(t, a, "other", "one")
	good := must[[]transfer.Part](t)(partsOf(t, side(a), side(open(t)), "talk"))
	stranger := must[kv.Row](t)(a.Rows().Get(t.Context(), keyspace.Conversation("other")))
	without := func(drop func(transfer.Piece) bool) (parts []transfer.Part) {
		for _, p := range good {
			q := transfer.Part{Rows: p.Rows}
			for _, piece := range p.Pieces {
				if !drop(piece) {
					q.Pieces = append(q.Pieces, piece)
				}
			}
			parts = append(parts, q)
		}
		return parts
	}
	root := must[conversation.Info](t)(a.Conversations().Get(t.Context(), "talk")).Root
	var missing *kv.MissingBlobsError
	for name, c := range map[string]struct {
		parts []transfer.Part
		as    any
		is    error
	}{
		"no blobs":            {parts: without(func(transfer.Piece) bool { return true }), as: &missing},
		"no root":             {parts: without(func(p transfer.Piece) bool { return p.ID == root }), as: &missing},
		"no record":           {parts: []transfer.Part{{Pieces: good[len(good)-1].Pieces}}, is: kv.ErrInvalidBatch},
		"a row of another":    {parts: append([]transfer.Part{{Rows: []kv.Row{stranger}}}, good...), is: kv.ErrInvalidBatch},
		"a changed blob":      {parts: append([]transfer.Part{{Pieces: []transfer.Piece{{ID: root, Size: 3, Data: []byte("abc")}}}}, good...), is: blob.ErrMismatch},
		"a blob that ends":    {parts: append(good[:len(good):len(good)], transfer.Part{Pieces: []transfer.Piece{{ID: root, Size: 9, Data: []byte("abc")}}}), is: kv.ErrInvalidBatch},
		"a blob that changes": {parts: append([]transfer.Part{{Pieces: []transfer.Piece{{ID: blob.Sum(nil), Size: 9, Data: []byte("abc")}, {ID: root, Size: 3, Data: []byte("abc")}}}}, good...), is: kv.ErrInvalidBatch},
		"more than its size":  {parts: []transfer.Part{{Pieces: []transfer.Piece{{ID: root, Size: 2, Data: []byte("abc")}}}}, is: kv.ErrInvalidBatch},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			_, err := arrive(t, b, "talk", nil, c.parts)
			if c.as != nil && !errors.As(err, c.as) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v", err)
			}
			if left := leftOf(t, b, "talk"); len(left) > 0 {
				t.Errorf("rows that were left behind: %q", left)
			}
			healthy(t, b)
		})
	}
	in := transfer.Receive(side(open(t)), "talk", nil)
	defer in.Close()
	var err error
	for i := 0; err == nil && i < 100; i++ {
		row := kv.Row{Key: keyspace.MessageHead("talk", fmt.Sprint(i)), Value: []byte(strings.Repeat("0", 1<<20))}
		err = in.Take(t.Context(), transfer.Part{Rows: []kv.Row{row}})
	}
	if err == nil {
		t.Error("any number of rows is held in memory")
	}
}

// A blob that the store refuses at its first piece ends there: closing does not wait for it.
func TestABlobThatIsRefusedAtOnceEnds(t *testing.T) {
	for _, size := range []int64{1<<63 - 1, blob.MaxSize + 1} {
		in := transfer.Receive(side(open(t)), "talk", nil)
		err := in.Take(t.Context(), transfer.Part{Pieces: []transfer.Piece{{ID: blob.Sum([]byte("x")), Size: size, Data: []byte("short")}}})
		if !errors.Is(err, blob.ErrTooLarge) {
			t.Errorf("%d bytes: got %v, want %v", size, err, blob.ErrTooLarge)
		}
		closed := make(chan struct{})
		go func() { in.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Fatalf("%d bytes: closing waits for a blob that has ended", size)
		}
	}
}
