// Package stetblob is a bucket of the Go CDK (gocloud.dev/blob) that keeps its objects in
// stet: in an embedded store, or on a server.
//
//	db, err := stet.Open(ctx, dir, nil)
//	bucket := stetblob.OpenBucket(db.Blobs(), db.Rows(), "files", nil)
//	defer bucket.Close()
//	err = bucket.WriteAll(ctx, "report.txt", data, nil)
//
// On a server it is OpenBucket(client.Blobs(), client.Rows(), "files", nil). A bucket is a
// collection of documents, an object a document; equal contents are stored once. Signed
// URLs are not supported. Keys have up to 1,024 bytes, in which spaces and control
// characters count three.
package stetblob

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	stetblobs "github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/document"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/kv"
)

// Options configure a bucket; nil means all defaults.
type Options struct {
	// TempDir is where large objects are kept while they are written; empty means the
	// system's directory for temporary files.
	TempDir string
}

// OpenBucket returns a bucket that keeps its objects as documents of a collection. A commit
// to rows must make the blobs that it names durable in blobs. Closing the bucket leaves
// both open.
func OpenBucket(blobs stetblobs.Store, rows kv.Store, collection string, opts *Options) *blob.Bucket {
	return blob.NewBucket(open(blobs, rows, collection, opts))
}

func open(blobs stetblobs.Store, rows kv.Store, collection string, opts *Options) *bucket {
	b := &bucket{blobs: blobs, documents: document.Open(blobs, rows, nil), collection: collection}
	if opts != nil {
		b.tempDir = opts.TempDir
	}
	return b
}

type bucket struct {
	blobs      stetblobs.Store
	documents  *document.Store
	collection string
	tempDir    string
}

var (
	errNotFound      = fault.New(fault.NotFound, "object not found")
	errUnimplemented = fault.New(fault.Unsupported, "not supported by stet")
	errBadMD5        = fault.New(fault.Invalid, "the content does not have the expected MD5")
)

// attributes are the metadata of a document, in JSON.
type attributes struct {
	CacheControl       string            `json:"cacheControl,omitempty"`
	ContentDisposition string            `json:"contentDisposition,omitempty"`
	ContentEncoding    string            `json:"contentEncoding,omitempty"`
	ContentLanguage    string            `json:"contentLanguage,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"`
	CreatedMs          int64             `json:"createdMs"`
	MD5                []byte            `json:"md5"`
}

// get returns a document without reading its content, unless that is in the row.
func (b *bucket) get(ctx context.Context, key string) (document.Document, attributes, error) {
	docs, err := b.documents.Limited(1).Get(ctx, b.collection, escape(key))
	if err == nil && len(docs) == 0 {
		err = fmt.Errorf("%w: %q", errNotFound, key)
	}
	if err != nil {
		return document.Document{}, attributes{}, err
	}
	attrs, err := attributesOf(docs[0])
	return docs[0], attrs, err
}

func attributesOf(doc document.Document) (attrs attributes, err error) {
	if err = json.Unmarshal(doc.Metadata, &attrs); err != nil {
		return attrs, fmt.Errorf("document %q is not an object of a bucket: %w", doc.Name, err)
	}
	return attrs, nil
}

func (b *bucket) Attributes(ctx context.Context, key string) (*driver.Attributes, error) {
	doc, attrs, err := b.get(ctx, key)
	if err != nil {
		return nil, err
	}
	return &driver.Attributes{
		CacheControl: attrs.CacheControl, ContentDisposition: attrs.ContentDisposition,
		ContentEncoding: attrs.ContentEncoding, ContentLanguage: attrs.ContentLanguage,
		ContentType: doc.Type, Metadata: attrs.Metadata,
		CreateTime: time.UnixMilli(attrs.CreatedMs), ModTime: doc.Changed,
		Size: doc.Size, MD5: attrs.MD5, ETag: `"` + doc.Version + `"`,
		AsFunc: as(doc),
	}, nil
}

// as returns the As function of an object, which provides its document.
func as(doc document.Document) func(any) bool {
	return func(i any) bool {
		p, ok := i.(*document.Document)
		if ok {
			*p = doc
		}
		return ok
	}
}

// As provides the store of documents.
func (b *bucket) As(i any) bool {
	p, ok := i.(**document.Store)
	if ok {
		*p = b.documents
	}
	return ok
}

func (b *bucket) ErrorAs(err error, target any) bool { return errors.As(err, target) }

func (b *bucket) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, errNotFound):
		return gcerrors.NotFound
	case errors.Is(err, errUnimplemented):
		return gcerrors.Unimplemented
	case errors.Is(err, document.ErrConflict):
		return gcerrors.FailedPrecondition
	case errors.Is(err, document.ErrInvalid), errors.Is(err, errBadMD5):
		return gcerrors.InvalidArgument
	case errors.Is(err, context.Canceled):
		return gcerrors.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return gcerrors.DeadlineExceeded
	}
	return gcerrors.Unknown
}

func (b *bucket) Copy(ctx context.Context, to, from string, opts *driver.CopyOptions) error {
	doc, attrs, err := b.get(ctx, from)
	if err != nil {
		return err
	}
	if opts.BeforeCopy != nil {
		if err := opts.BeforeCopy(func(any) bool { return false }); err != nil {
			return err
		}
	}
	attrs.CreatedMs = time.Now().UnixMilli()
	return b.set(ctx, to, attrs, document.New{Type: doc.Type, Data: doc.Data, Blob: doc.Blob, Size: doc.Size}, nil)
}

// set stores an object as a document.
func (b *bucket) set(ctx context.Context, key string, attrs attributes, to document.New, expect document.Expectation) error {
	var err error
	if to.Metadata, err = json.Marshal(attrs); err != nil {
		return err
	}
	_, err = b.documents.Commit(ctx, b.collection, document.Batch{Changes: []document.Change{{Name: escape(key), Set: &to, Expect: expect}}})
	return err
}

func (b *bucket) Delete(ctx context.Context, key string, opts *driver.DeleteOptions) error {
	doc, _, err := b.get(ctx, key)
	if err != nil {
		return err
	}
	if opts.BeforeDelete != nil {
		if err := opts.BeforeDelete(as(doc)); err != nil {
			return err
		}
	}
	// An object that another writer replaces meanwhile is deleted, too: that change was
	// not seen here.
	_, err = b.documents.Commit(ctx, b.collection, document.Batch{Changes: []document.Change{{Name: escape(key), Delete: true}}})
	return err
}

func (b *bucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errUnimplemented
}

func (b *bucket) Close() error { return nil }

// reader reads a part of an object.
type reader struct {
	io.Reader
	io.Closer
	doc document.Document
}

func (r *reader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{ContentType: r.doc.Type, ModTime: r.doc.Changed, Size: r.doc.Size}
}

func (r *reader) As(i any) bool { return as(r.doc)(i) }

func (b *bucket) NewRangeReader(ctx context.Context, key string, offset, length int64, opts *driver.ReaderOptions) (driver.Reader, error) {
	doc, _, err := b.get(ctx, key)
	if err != nil {
		return nil, err
	}
	if opts.BeforeRead != nil {
		if err := opts.BeforeRead(as(doc)); err != nil {
			return nil, err
		}
	}
	content, err := b.content(ctx, doc)
	if err != nil {
		return nil, err
	}
	r := &reader{Reader: content, Closer: content, doc: doc}
	if _, err := io.CopyN(io.Discard, content, min(offset, doc.Size)); err != nil {
		return nil, errors.Join(err, content.Close())
	}
	if length >= 0 {
		r.Reader = io.LimitReader(content, length)
	}
	return r, nil
}

// content opens the content of a document.
func (b *bucket) content(ctx context.Context, doc document.Document) (io.ReadCloser, error) {
	if doc.Data != nil {
		return inRow(doc.Data), nil
	}
	return stetblobs.Open(ctx, b.blobs, doc.Blob)
}

func checkMD5(want, got []byte) error {
	if len(want) > 0 && string(want) != string(got) {
		return fmt.Errorf("%w: %x, want %x", errBadMD5, got, want)
	}
	return nil
}

var newMD5 = md5.New // the Go CDK shows it to callers; contents are checked by SHA-256
