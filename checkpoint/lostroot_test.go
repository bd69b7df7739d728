package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv/memkv"
)

// A conversation whose state is lost does not keep files from being captured.
func TestFilesAreCapturedWithoutALostState(t *testing.T) {
	blobs := memblob.New()
	w, err := checkpoint.New(blob.Checked(blobs), memkv.New(blobs), nil).Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i, text := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(w.Path(), "a"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		lost := blob.Sum([]byte("a lost state"))
		res, err := w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "c", Root: lost})
		if err != nil {
			t.Fatal(err)
		}
		var loss *conversation.HydrationError
		if !errors.As(res.StateError, &loss) || loss.Conversation != "c" || loss.Source == "" || fault.Of(res.StateError) != fault.Damaged {
			t.Errorf("%d: the loss is reported as %v", i, res.StateError)
		}
		if res.Record == nil || res.Record.Conversation != "c" || !res.Record.Root.IsZero() || res.Record.FilesChanged != 1 {
			t.Errorf("%d: %+v", i, res.Record)
		}
		stored, err := w.Resolve(t.Context(), res.Record.ID, "")
		if err != nil || stored.Tree != res.Record.Tree || !stored.Root.IsZero() {
			t.Errorf("%d: %+v, %v", i, stored, err)
		}
	}
	there := blob.New([]byte("a state"))
	if err := blobs.Put(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	if res, err := w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "c", Root: there.ID}); err != nil || res.StateError != nil || res.Record.Root != there.ID {
		t.Errorf("with a state: %+v, %v", res, err)
	}
}

// A state whose bytes are damaged is reported, and stays named: it may be repaired.
func TestFilesAreCapturedWithADamagedState(t *testing.T) {
	blobs := memblob.New()
	damaged := blob.Blob{ID: blob.Sum([]byte("a state")), Data: []byte("other bytes")}
	if err := blobs.Put(t.Context(), damaged); err != nil {
		t.Fatal(err)
	}
	w, err := checkpoint.New(blob.Checked(blobs), memkv.New(blobs), nil).Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	res, err := w.Checkpoint(t.Context(), checkpoint.Request{Conversation: "c", Root: damaged.ID})
	if err != nil {
		t.Fatal(err)
	}
	if fault.Of(res.StateError) != fault.Damaged || res.Record == nil || res.Record.Root != damaged.ID {
		t.Errorf("%+v, %v", res.Record, res.StateError)
	}
}
