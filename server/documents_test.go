package server_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
)

func setDocument(name, content string) *stetv1.DocumentChange {
	return &stetv1.DocumentChange{Name: name, Change: &stetv1.DocumentChange_Set{Set: &stetv1.NewDocument{
		Type: "text/plain", Content: &stetv1.NewDocument_Data{Data: []byte(content)},
	}}}
}

// Large contents go by BlobService, in both directions. Pages end before a message is too
// large, and continue.
func TestDocumentsOverTheWire(t *testing.T) {
	d := dial(t, start(t, nil), token)
	http, base := d.HTTP()
	documents := stetv1connect.NewDocumentServiceClient(http, base)
	large := blob.New(bytes.Repeat([]byte("large "), 500_000))
	if err := d.Blobs().Put(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	changes := []*stetv1.DocumentChange{{Name: "large", Change: &stetv1.DocumentChange_Set{Set: &stetv1.NewDocument{Content: &stetv1.NewDocument_Blob{Blob: large.ID.Bytes()}}}}}
	var names []string
	for i := range 7 {
		name := fmt.Sprintf("middle/%d", i)
		names = append(names, name)
		call(t, documents.Commit, &stetv1.CommitDocumentsRequest{Collection: "c", Changes: []*stetv1.DocumentChange{setDocument(name, strings.Repeat(fmt.Sprint(i), 900_000))}})
	}
	set := call(t, documents.Commit, &stetv1.CommitDocumentsRequest{Collection: "c", Changes: changes}).GetDocuments()
	if len(set) != 1 || set[0].GetSize() != 3_000_000 || set[0].GetContent() != nil {
		t.Errorf("set %v", set)
	}
	got := call(t, documents.Get, &stetv1.GetDocumentsRequest{Collection: "c", Names: []string{"large", "middle/1", "middle/2", "none"}}).GetDocuments()
	if len(got) != 3 || !bytes.Equal(got[0].GetBlob(), large.ID.Bytes()) || len(got[1].GetData()) != 900_000 || len(got[2].GetBlob()) != 32 {
		t.Errorf("got %d documents", len(got))
	}
	for _, reverse := range []bool{false, true} {
		var listed []string
		pages := 0
		for cursor := ""; ; pages++ {
			page := call(t, documents.List, &stetv1.ListDocumentsRequest{Collection: "c", Prefix: "middle/", Reverse: reverse, Page: &stetv1.Page{Cursor: cursor, Limit: 6}})
			for _, doc := range page.GetDocuments() {
				listed = append(listed, doc.GetName())
				if len(doc.GetData()) != 900_000 {
					t.Errorf("%s has %d bytes", doc.GetName(), len(doc.GetData()))
				}
			}
			if cursor = page.GetNextCursor(); cursor == "" {
				break
			}
		}
		if reverse {
			slices.Reverse(listed)
		}
		if pages == 0 || !slices.Equal(listed, names) {
			t.Errorf("listed %q in %d pages", listed, pages+1)
		}
	}
	for _, doc := range call(t, documents.List, &stetv1.ListDocumentsRequest{Collection: "c", NamesOnly: true}).GetDocuments() {
		if doc.GetContent() != nil || doc.GetSize() == 0 || doc.GetVersion() == "" {
			t.Errorf("a name: %v", doc)
		}
	}
	if all := call(t, documents.Collections, &stetv1.ListCollectionsRequest{}).GetCollections(); !slices.Equal(all, []string{"c"}) {
		t.Errorf("collections %q", all)
	}
}

// A change of a document that another writer changed is refused, and may be tried again
// after reading.
func TestDocumentConflicts(t *testing.T) {
	http, base := dial(t, start(t, nil), token).HTTP()
	documents := stetv1connect.NewDocumentServiceClient(http, base)
	first := call(t, documents.Commit, &stetv1.CommitDocumentsRequest{Collection: "c", Changes: []*stetv1.DocumentChange{setDocument("a", "1")}}).GetDocuments()[0]
	for _, expect := range []string{"", "other"} {
		change := setDocument("a", "2")
		change.Expect = &expect
		_, err := documents.Commit(t.Context(), &stetv1.CommitDocumentsRequest{Collection: "c", Changes: []*stetv1.DocumentChange{setDocument("b", "1"), change}})
		if connect.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), first.GetVersion()) {
			t.Errorf("expected %q: %v", expect, err)
		}
	}
	change := &stetv1.DocumentChange{Name: "a", Expect: &first.Version, Change: &stetv1.DocumentChange_Delete{Delete: true}}
	call(t, documents.Commit, &stetv1.CommitDocumentsRequest{Collection: "c", Changes: []*stetv1.DocumentChange{change}})
	if left := call(t, documents.List, &stetv1.ListDocumentsRequest{Collection: "c"}).GetDocuments(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	zero := &stetv1.NewDocument{Content: &stetv1.NewDocument_Blob{Blob: make([]byte, 32)}}
	_, err := documents.Commit(t.Context(), &stetv1.CommitDocumentsRequest{Collection: "c", Changes: []*stetv1.DocumentChange{{Name: "a", Change: &stetv1.DocumentChange_Set{Set: zero}}}})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a blob that cannot exist: %v", err)
	}
	_, err = stetv1connect.NewThreadServiceClient(http, base).Put(t.Context(), &stetv1.PutFrameRequest{
		Key: &stetv1.FrameKey{Thread: "t", Id: "1"}, Body: &stetv1.FrameValue{Content: &stetv1.FrameValue_Blob{Blob: make([]byte, 32)}},
	})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a frame of a blob that cannot exist: %v", err)
	}
	_, err = documents.Commit(t.Context(), &stetv1.CommitDocumentsRequest{Collection: "c", Changes: []*stetv1.DocumentChange{setDocument("", "1")}})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("no name: %v", err)
	}
}
