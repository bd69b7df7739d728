package transfer_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/stream"
	"github.com/stet-dev/stet/transfer"
)

const plainText = "text/plain"

func streamed(t *testing.T, db *stet.DB, path string, seq uint64, data []byte) {
	t.Helper()
	_, err := db.Streams().Append(t.Context(), path, stream.Append{
		ContentType: plainText, Data: data, Producer: &stream.Producer{ID: "p", Seq: seq},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func created(t *testing.T, db *stet.DB, path string, c stream.Config, data []byte) {
	t.Helper()
	if _, _, err := db.Streams().Create(t.Context(), path, c, data); err != nil {
		t.Fatal(err)
	}
}

func TestStreamsAreMoved(t *testing.T) {
	a, b := open(t), open(t)
	all := &transfer.Options{Everything: true}
	large := bytes.Repeat([]byte("large "), 20_000)
	ttl := uint64(3600)
	created(t, a, "z", stream.Config{ContentType: plainText, Expiry: stream.Expiry{TTL: &ttl}}, []byte("first"))
	streamed(t, a, "z", 0, large)
	created(t, a, "fork", stream.Config{Fork: &stream.Fork{Source: "z"}}, []byte("own")) // comes before its source
	move(t, a, b, all)
	compareStores(t, a, b)
	healthy(t, b)

	streamed(t, a, "z", 1, []byte("later"))
	streamed(t, a, "fork", 0, large)
	move(t, a, b, all)
	compareStores(t, a, b)
	healthy(t, b)
	got, err := b.Streams().Read(t.Context(), "fork", stream.Offset{}, &stream.ReadOptions{MaxBytes: 1 << 30})
	if err != nil || string(stream.Body(plainText, got.Appends)) != "first"+string(large)+"own"+string(large) {
		t.Errorf("the fork has %d appends, %v", len(got.Appends), err)
	}
	streamed(t, b, "z", 1, []byte("later")) // the repetition of a producer adds nothing here either
	compareStores(t, a, b)
	if again := move(t, a, b, all); again.Blobs != 0 || len(again.Left) != 0 {
		t.Errorf("again: %+v", again)
	}
}

func TestStreamsOfTheTargetStay(t *testing.T) {
	a, b := open(t), open(t)
	all := &transfer.Options{Everything: true}
	created(t, a, "s", stream.Config{ContentType: plainText}, []byte("one"))
	created(t, a, "other", stream.Config{ContentType: plainText}, []byte("one"))
	created(t, b, "other", stream.Config{ContentType: plainText}, []byte("two"))
	move(t, a, b, all)
	streamed(t, a, "s", 0, []byte("here"))
	streamed(t, b, "s", 0, []byte("there"))
	streamed(t, b, "s", 1, []byte("and more"))
	left := strings.Join(move(t, a, b, all).Left, "\n")
	if !strings.Contains(left, "stream s, which was continued there") || !strings.Contains(left, "stream other, which is another one there") {
		t.Errorf("left: %s", left)
	}
	for path, want := range map[string]string{"s": "onethereand more", "other": "two"} {
		got, err := b.Streams().Read(t.Context(), path, stream.Offset{}, nil)
		if err != nil || string(stream.Body(plainText, got.Appends)) != want {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
}
