package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/access"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/server"
	"github.com/stet-dev/stet/transfer"
)

// talked returns a store on this machine with a conversation of some turns.
func talked(t *testing.T, id string, turns int) *stet.DB {
	t.Helper()
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	talkOn(t, db, id, turns)
	return db
}

func talkOn(t *testing.T, db *stet.DB, id string, turns int) {
	t.Helper()
	c, err := db.Conversations().Open(t.Context(), id)
	if errors.Is(err, conversation.ErrNotFound) {
		c, err = db.Conversations().Create(t.Context(), conversation.Info{ID: id, Title: "about " + id})
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range turns {
		turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprintf("turn %d of %s", i, id)})
		if err == nil {
			err = c.AppendTurn(t.Context(), turn)
		}
		if err == nil {
			_, err = c.Save(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func sideOf(db *stet.DB) transfer.Side { return transfer.Side{Blobs: db.Blobs(), Rows: db.Rows()} }

// rootOf returns the head of a conversation, zero if there is none.
func rootOf(t *testing.T, db *stet.DB, id string) blob.ID {
	t.Helper()
	info, err := db.Conversations().Get(t.Context(), id)
	if err != nil && !errors.Is(err, conversation.ErrNotFound) {
		t.Fatal(err)
	}
	return info.Root
}

// remoteDB is the store of a tenant as its clients see it.
func remoteDB(c *client.Client) *stet.DB { return stet.NewRemote(c.Blobs(), c.Rows(), nil, nil) }

// One call moves a conversation, with no more than the write scope to the server and the
// read scope back.
func TestAConversationMovesWithOneCall(t *testing.T) {
	ctx := t.Context()
	h := newHouse(t, nil)
	writer, reader, stranger := h.client("a", access.Write), h.client("a", access.Read), h.client("b", access.Admin)
	local := talked(t, "talk", 3)
	moved, err := writer.Upload(ctx, sideOf(local), "talk", false, nil)
	if err != nil || moved.Status != transfer.Created || moved.Saves != 3 || moved.Blobs == 0 {
		t.Fatalf("got %+v, %v", moved, err)
	}
	if got := rootOf(t, remoteDB(reader), "talk"); got != rootOf(t, local, "talk") {
		t.Errorf("the server has %s", got)
	}
	if again, err := writer.Upload(ctx, sideOf(local), "talk", false, nil); err != nil || again.Status != transfer.Current || again.Blobs != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	talkOn(t, local, "talk", 1)
	if more, err := writer.Upload(ctx, sideOf(local), "talk", false, nil); err != nil || more.Status != transfer.Updated || more.Saves != 1 || more.Blobs >= moved.Blobs {
		t.Errorf("one more turn: %+v, %v", more, err)
	}

	other := talked(t, "mine", 1)
	got, err := reader.Download(ctx, "talk", sideOf(other), false, nil)
	if err != nil || got.Status != transfer.Created || got.Saves != 4 {
		t.Errorf("got %+v, %v", got, err)
	}
	if rootOf(t, other, "talk") != rootOf(t, local, "talk") {
		t.Error("the downloaded conversation has another head")
	}
	if again, err := reader.Download(ctx, "talk", sideOf(other), false, nil); err != nil || again.Status != transfer.Current || again.Blobs != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}

	if _, err := reader.Upload(ctx, sideOf(other), "mine", false, nil); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("with a read token: %v", err)
	}
	if got := rootOf(t, remoteDB(reader), "mine"); !got.IsZero() {
		t.Error("a read token stored a conversation")
	}
	if _, err := stranger.Download(ctx, "talk", sideOf(other), false, nil); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := writer.Upload(ctx, sideOf(other), "none", false, nil); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("one that there is not: %v", err)
	}
	if _, err := reader.Download(ctx, "talk", sideOf(other), true, nil); !errors.Is(err, transfer.ErrPlain) {
		t.Errorf("from an encrypted store: %v", err)
	}
}

var errGone = fmt.Errorf("the process is gone: %w", io.ErrUnexpectedEOF)

// dying fails from one call on.
type dying struct {
	blob.Store
	left int
}

func (d *dying) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if d.left--; d.left < 0 {
		return nil, errGone
	}
	return d.Store.Get(ctx, id)
}

func (d *dying) Put(ctx context.Context, blobs ...blob.Blob) error {
	if d.left--; d.left < 0 {
		return errGone
	}
	return d.Store.Put(ctx, blobs...)
}

// A process ends in the middle of an upload or a download, and another one repeats it.
func TestATransferOfAKilledProcessIsRepeated(t *testing.T) {
	ctx := t.Context()
	h := newHouse(t, nil)
	c := h.client("a", access.Write)
	local := talked(t, "talk", 5)
	for left := 0; ; left++ {
		from := sideOf(local)
		from.Blobs = &dying{from.Blobs, left}
		_, err := c.Upload(ctx, from, "talk", false, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, errGone) {
			t.Fatalf("after %d blobs: %v", left, err)
		}
		if got := rootOf(t, remoteDB(c), "talk"); !got.IsZero() {
			t.Fatalf("after %d blobs the server shows %s", left, got)
		}
	}
	if got := rootOf(t, remoteDB(c), "talk"); got != rootOf(t, local, "talk") {
		t.Errorf("the server has %s", got)
	}
	back := talked(t, "mine", 1)
	for left := 0; ; left++ {
		to := sideOf(back)
		to.Blobs = &dying{to.Blobs, left}
		_, err := c.Download(ctx, "talk", to, false, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, errGone) {
			t.Fatalf("after %d calls: %v", left, err)
		}
	}
	if rootOf(t, back, "talk") != rootOf(t, local, "talk") {
		t.Error("the downloaded conversation has another head")
	}
}

// upload sends parts as any client could.
func upload(ctx context.Context, c *client.Client, messages ...*stetv1.UploadConversationRequest) error {
	http, address := c.HTTP()
	stream, err := stetv1connect.NewTransferServiceClient(http, address).Upload(ctx)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := stream.Send(m); err != nil {
			break // the answer says why
		}
	}
	_, err = stream.CloseAndReceive()
	return err
}

func TestBadUploadsLeaveNothing(t *testing.T) {
	ctx := t.Context()
	h := newHouse(t, nil)
	local := talked(t, "talk", 2)
	var rows, blobs []*stetv1.UploadConversationRequest
	all, err := transfer.Blobs(ctx, sideOf(local), "talk")
	if err != nil {
		t.Fatal(err)
	}
	err = transfer.Send(ctx, sideOf(local), "talk", all, func(p transfer.Part) error {
		if m := (&stetv1.UploadConversationRequest{Part: p.Wire()}); len(p.Rows) > 0 {
			rows = append(rows, m)
		} else {
			blobs = append(blobs, m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	first := &stetv1.UploadConversationRequest{Id: "talk"}
	row := func(key string, value string) *stetv1.UploadConversationRequest {
		return &stetv1.UploadConversationRequest{Part: &stetv1.ConversationPart{Rows: []*stetv1.Row{{Key: []byte(key), Value: []byte(value)}}}}
	}
	for name, test := range map[string]struct {
		messages [][]*stetv1.UploadConversationRequest
		want     connect.Code
	}{
		"nothing":            {nil, connect.CodeInvalidArgument},
		"no id":              {[][]*stetv1.UploadConversationRequest{rows, blobs}, connect.CodeInvalidArgument},
		"no record":          {[][]*stetv1.UploadConversationRequest{{first}, blobs}, connect.CodeInvalidArgument},
		"a record of others": {[][]*stetv1.UploadConversationRequest{{first}, rows, {row(keyspace.Conversation("talk"), "\x08\x01\x12\x03bad")}, blobs}, connect.CodeInvalidArgument},
		"a row of the house": {[][]*stetv1.UploadConversationRequest{{first}, rows, {row("stet:settings", "x")}, blobs}, connect.CodeInvalidArgument},
		"no blobs":           {[][]*stetv1.UploadConversationRequest{{first}, rows}, connect.CodeFailedPrecondition},
	} {
		c := h.client(strings.ReplaceAll(name, " ", "-"), access.Write) // nobody else's blobs help
		var messages []*stetv1.UploadConversationRequest
		for _, some := range test.messages {
			messages = append(messages, some...)
		}
		if err := upload(ctx, c, messages...); connect.CodeOf(err) != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
		for row, err := range c.Rows().Scan(ctx, kv.Range{}, kv.ScanOptions{KeysOnly: true}) {
			if err != nil || keyspace.Family(row.Key) == keyspace.Family(keyspace.Conversation("talk")) {
				t.Errorf("%s: left %q, %v", name, row.Key, err)
			}
		}
	}
	if err := upload(ctx, h.client("good", access.Write), append(append([]*stetv1.UploadConversationRequest{first}, rows...), blobs...)...); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

// A download of a blob that nothing needs is no loss; one that the conversation needs is.
func TestDownloadsOfUnknownBlobsAreNotLost(t *testing.T) {
	db := talked(t, "talk", 1)
	root := rootOf(t, db, "talk")
	needed, err := transfer.Blobs(t.Context(), sideOf(db), "talk")
	if err != nil {
		t.Fatal(err)
	}
	leaf := needed[slices.IndexFunc(needed, func(id blob.ID) bool { return id != root })]
	download := func(db *stet.DB, id string, wanted blob.ID) error {
		hc, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
		return drained(stetv1connect.NewTransferServiceClient(hc, base).Download(t.Context(), &stetv1.DownloadConversationRequest{
			Id: id, Blobs: [][]byte{root.Bytes(), wanted.Bytes()},
		}))
	}
	for _, id := range []string{"talk", "nope"} {
		if err := download(db, id, blob.ID{}); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("an unknown blob of %s: %v", id, err)
		}
	}
	without := stet.NewRemote(lacking{db.Blobs(), leaf}, db.Rows(), nil, nil)
	if err := download(without, "talk", leaf); connect.CodeOf(err) != connect.CodeDataLoss {
		t.Errorf("a lost blob: %v", err)
	}
}

// lacking is a store that has lost a blob.
type lacking struct {
	blob.Store
	lost blob.ID
}

func (l lacking) Get(ctx context.Context, id blob.ID) ([]byte, error) {
	if id == l.lost {
		return nil, blob.NotFound(id)
	}
	return l.Store.Get(ctx, id)
}

func (l lacking) Has(ctx context.Context, ids ...blob.ID) ([]bool, error) {
	has, err := l.Store.Has(ctx, ids...)
	for i, id := range ids {
		has[i] = has[i] && id != l.lost
	}
	return has, err
}
