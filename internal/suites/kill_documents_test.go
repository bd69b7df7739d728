package suites

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

func TestKilledUnderDocuments(t *testing.T) { killed(t, embedded(t), &documents{}) }

func TestKilledUnderDocumentsOnAFleet(t *testing.T) {
	onlyWhole(t)
	killed(t, shared(t), &documents{})
}

// documents is the load of the adapters for SDKs: each writer appends events to a log. A
// commit has the event and its idempotency key, and names the event before it.
type documents struct {
	service stetv1connect.DocumentServiceClient
}

func (d *documents) begin(_ context.Context, at server, _ int) error {
	var c caller
	err := c.connect(at)
	d.service = stetv1connect.NewDocumentServiceClient(c.http, c.base)
	return err
}

const collection = "killed"

func eventName(writer, number int) string { return fmt.Sprintf("events/%02d/%06d", writer, number) }
func keyName(writer, number int) string   { return fmt.Sprintf("keys/%02d/%06d", writer, number) }

// content of every other event is large enough to be kept apart from its row.
func content(writer, number int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "event %d of writer %d. ", number, writer), 1+number%2*200)
}

// next appends an event, unless its key says that an earlier call did.
func (d *documents) next(ctx context.Context, writer, number int) error {
	key, before := keyName(writer, number), eventName(writer, number-1)
	read, err := d.service.Get(ctx, &stetv1.GetDocumentsRequest{Collection: collection, Names: []string{key, before}})
	if err != nil {
		return err
	}
	changes := []*stetv1.DocumentChange{newDocument(eventName(writer, number), content(writer, number)), newDocument(key, nil)}
	for _, doc := range read.GetDocuments() {
		if doc.GetName() == key {
			return nil
		}
		version := doc.GetVersion()
		changes = append(changes, &stetv1.DocumentChange{Name: before, Expect: &version})
	}
	_, err = d.service.Commit(ctx, &stetv1.CommitDocumentsRequest{Collection: collection, Changes: changes})
	return err
}

func newDocument(name string, data []byte) *stetv1.DocumentChange {
	absent := ""
	set := &stetv1.NewDocument{Content: &stetv1.NewDocument_Data{Data: data}}
	return &stetv1.DocumentChange{Name: name, Expect: &absent, Change: &stetv1.DocumentChange_Set{Set: set}}
}

func (d *documents) check(ctx context.Context, acknowledged []int) error {
	have := make([]int, len(acknowledged))
	for w := range acknowledged {
		events, err := d.list(ctx, fmt.Sprintf("events/%02d/", w))
		if err != nil {
			return err
		}
		keys, err := d.list(ctx, fmt.Sprintf("keys/%02d/", w))
		if err != nil {
			return err
		}
		if have[w] = len(events); len(keys) != len(events) {
			return fmt.Errorf("writer %d: %d events have %d keys", w, len(events), len(keys))
		}
		for n, doc := range events {
			if doc.GetName() != eventName(w, n) || keys[n].GetName() != keyName(w, n) || !bytes.Equal(doc.GetData(), content(w, n)) {
				return fmt.Errorf("writer %d: event %d is %q with the key %q and has %.40q", w, n, doc.GetName(), keys[n].GetName(), doc.GetData())
			}
		}
	}
	return counts(have, acknowledged)
}

// list returns the documents whose names begin with a prefix.
func (d *documents) list(ctx context.Context, prefix string) ([]*stetv1.Document, error) {
	var all []*stetv1.Document
	for cursor := ""; ; {
		res, err := d.service.List(ctx, &stetv1.ListDocumentsRequest{Collection: collection, Prefix: prefix, Page: &stetv1.Page{Cursor: cursor, Limit: 100}})
		if err != nil {
			return nil, err
		}
		if len(res.GetDamaged()) > 0 {
			return nil, fmt.Errorf("damaged documents %v", res.GetDamaged())
		}
		all = append(all, res.GetDocuments()...)
		if cursor = res.GetNextCursor(); cursor == "" {
			return all, nil
		}
	}
}
