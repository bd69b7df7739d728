package s3api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// FullObject and Composite are the types of a checksum: of all bytes, or of the checksums of
// the parts.
const (
	FullObject = "FULL_OBJECT"
	Composite  = "COMPOSITE"
)

// CreateUpload begins an upload in parts, with checksums or without, and returns its id.
func (c *Client) CreateUpload(ctx context.Context, key string, checksums bool) (id string, err error) {
	header := make(http.Header)
	if checksums {
		header.Set("X-Amz-Checksum-Algorithm", "CRC32C")
		header.Set("X-Amz-Checksum-Type", FullObject)
	}
	// Services differ in the name of the document.
	answer, err := c.ask(ctx, request{method: http.MethodPost, key: key, query: url.Values{"uploads": {""}}, header: header}, "")
	if err != nil {
		return "", err
	}
	if id = answer.find("UploadId"); id == "" {
		return "", errors.New("the service gave the upload no id")
	}
	return id, nil
}

// PutPart sends a part. It returns its tag, and the checksum that the service confirms, if it
// does.
func (c *Client) PutPart(ctx context.Context, key, id string, number int, content Content) (tag, crc32c string, err error) {
	query := url.Values{"partNumber": {strconv.Itoa(number)}, "uploadId": {id}}
	header, err := c.send(ctx, content.request(key, query))
	return header.Get("ETag"), header.Get("X-Amz-Checksum-Crc32c"), err
}

// Part is a part of an upload.
type Part struct {
	Tag    string
	CRC32C string // empty without checksums
}

// CompleteUpload makes an object of the parts, which are in order. The checksum is that of
// the whole object or empty. It returns the checksum that the service confirms, with its type.
func (c *Client) CompleteUpload(ctx context.Context, key, id string, parts []Part, crc32c string) (confirmed, kind string, err error) {
	var w xmlWriter
	w.WriteString("<CompleteMultipartUpload" + namespace + ">")
	for i, part := range parts {
		w.WriteString("<Part>")
		if part.CRC32C != "" {
			w.field("ChecksumCRC32C", part.CRC32C)
		}
		w.field("ETag", part.Tag)
		w.field("PartNumber", strconv.Itoa(i+1))
		w.WriteString("</Part>")
	}
	w.WriteString("</CompleteMultipartUpload>")
	header := xmlHeader()
	if crc32c != "" {
		header.Set("X-Amz-Checksum-Crc32c", crc32c)
		header.Set("X-Amz-Checksum-Type", FullObject)
	}
	answer, err := c.ask(ctx, request{
		method: http.MethodPost, key: key, query: url.Values{"uploadId": {id}}, header: header, body: []byte(w.String()),
	}, "CompleteMultipartUploadResult")
	return answer.find("ChecksumCRC32C"), answer.find("ChecksumType"), err
}

// AbortUpload discards the parts of an upload.
func (c *Client) AbortUpload(ctx context.Context, key, id string) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, key: key, query: url.Values{"uploadId": {id}}})
	return err
}

// Upload is one that is not complete.
type Upload struct {
	Key, ID string
	Begun   time.Time // zero if the service does not say
}

// Uploads is a part of a listing of them.
type Uploads struct {
	Entries []Upload
	// More says that there are more, the markers how to ask for them.
	More                bool
	KeyMarker, IDMarker string
}

// ListUploads returns the uploads that are not complete.
func (c *Client) ListUploads(ctx context.Context, prefix, keyMarker, idMarker string) (*Uploads, error) {
	query := url.Values{"uploads": {""}, "prefix": {prefix}}
	if keyMarker != "" {
		query.Set("key-marker", keyMarker)
	}
	if idMarker != "" {
		query.Set("upload-id-marker", idMarker)
	}
	answer, err := c.ask(ctx, request{method: http.MethodGet, query: query}, "ListMultipartUploadsResult")
	if err != nil {
		return nil, err
	}
	l := &Uploads{More: isTrue(answer.find("IsTruncated")), KeyMarker: answer.find("NextKeyMarker"), IDMarker: answer.find("NextUploadIdMarker")}
	for _, e := range answer.inner {
		if e.is("Upload") {
			// One whose time cannot be read counts as one without: it is not known to be old.
			begun, _ := instant(e.find("Initiated"))
			l.Entries = append(l.Entries, Upload{Key: e.find("Key"), ID: e.find("UploadId"), Begun: begun})
		}
	}
	return l, nil
}
