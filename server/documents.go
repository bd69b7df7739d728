package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/document"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
)

// maxDocument limits the bytes of content in a document of a list, and in all
// documents of a Get. Callers read larger content with BlobService.
const maxDocument = wire.MaxMessage / 4

// documentService is stet.v1.DocumentService.
type documentService struct{ documents *document.Store }

func (s *documentService) Commit(ctx context.Context, req *stetv1.CommitDocumentsRequest) (*stetv1.CommitDocumentsResponse, error) {
	b := document.Batch{DeletePrefixes: req.GetDeletePrefixes()}
	for _, c := range req.GetChanges() {
		change := document.Change{Name: c.GetName(), Expect: c.Expect, Delete: c.GetDelete()}
		if set, ok := c.GetChange().(*stetv1.DocumentChange_Set); ok {
			var err error
			if change.Set, err = newDocument(set.Set); err != nil {
				return nil, err
			}
		}
		b.Changes = append(b.Changes, change)
	}
	docs, err := s.documents.Commit(ctx, req.GetCollection(), b)
	res := &stetv1.CommitDocumentsResponse{}
	for _, doc := range docs {
		doc.Blob = blob.ID{}
		res.Documents = append(res.Documents, wireDocument(doc))
	}
	return res, err
}

func newDocument(m *stetv1.NewDocument) (*document.New, error) {
	set := &document.New{Type: m.GetType(), Metadata: m.GetMetadata()}
	if of, ok := m.GetContent().(*stetv1.NewDocument_Blob); ok {
		var err error
		set.Blob, err = contentID(of.Blob)
		return set, err
	}
	set.Data = append([]byte{}, m.GetData()...)
	return set, nil
}

func (s *documentService) Get(ctx context.Context, req *stetv1.GetDocumentsRequest) (*stetv1.GetDocumentsResponse, error) {
	docs, err := s.documents.Get(ctx, req.GetCollection(), req.GetNames()...)
	res := &stetv1.GetDocumentsResponse{}
	for _, doc := range docs {
		res.Documents = append(res.Documents, wireDocument(doc))
	}
	return res, err
}

func (s *documentService) List(ctx context.Context, req *stetv1.ListDocumentsRequest) (*stetv1.ListDocumentsResponse, error) {
	q := document.Query{Collection: req.GetCollection(), Prefix: req.GetPrefix(), After: req.GetAfter(), Reverse: req.GetReverse(), NamesOnly: req.GetNamesOnly()}
	if cursor := req.GetPage().GetCursor(); cursor != "" {
		q.After = cursor
	}
	res := &stetv1.ListDocumentsResponse{}
	limit, size, last := wire.PageSize(req.GetPage().GetLimit()), 0, ""
	for doc, err := range s.documents.List(ctx, q) {
		if err != nil && doc.Name == "" {
			return nil, err
		}
		if len(res.Documents)+len(res.Damaged) == limit || size > wire.MaxMessage/2 {
			res.NextCursor = last
			break
		}
		if last = doc.Name; err != nil {
			res.Damaged = append(res.Damaged, &stetv1.Unreadable{Id: wire.Valid(doc.Name), Detail: wire.Valid(err.Error())})
			continue
		}
		out := wireDocument(doc)
		if q.NamesOnly {
			out.Content = nil
		}
		size += proto.Size(out)
		res.Documents = append(res.Documents, out)
	}
	return res, nil
}

func (s *documentService) Collections(ctx context.Context, req *stetv1.ListCollectionsRequest) (*stetv1.ListCollectionsResponse, error) {
	limit := wire.PageSize(req.GetPage().GetLimit())
	collections, err := s.documents.Collections(ctx, req.GetPage().GetCursor(), limit)
	if err != nil {
		return nil, err
	}
	res := &stetv1.ListCollectionsResponse{Collections: collections}
	if len(collections) == limit {
		res.NextCursor = collections[limit-1]
	}
	return res, nil
}

func wireDocument(doc document.Document) *stetv1.Document {
	out := &stetv1.Document{
		Name: doc.Name, Version: doc.Version, ChangedMs: doc.Changed.UnixMilli(),
		Size: uint64(doc.Size), Type: doc.Type, Metadata: doc.Metadata,
	}
	switch {
	case doc.Data != nil:
		out.Content = &stetv1.Document_Data{Data: doc.Data}
	case !doc.Blob.IsZero():
		out.Content = &stetv1.Document_Blob{Blob: doc.Blob.Bytes()}
	}
	return out
}
