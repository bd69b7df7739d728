package s3api

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"time"
)

// namespace is that of the documents in requests.
const namespace = ` xmlns="http://s3.amazonaws.com/doc/2006-03-01/"`

// Object is the answer to Get.
type Object struct {
	Header http.Header
	// Length is that of the body, or -1.
	Length int64
	Body   io.ReadCloser
}

// Get requests an object or, with a value for the header Range, a part of it. It asks for
// the checksum that the service has.
func (c *Client) Get(ctx context.Context, key, part string) (*Object, error) {
	header := http.Header{"X-Amz-Checksum-Mode": {"ENABLED"}}
	if part != "" {
		header.Set("Range", part)
	}
	var object *Object
	err := c.do(ctx, request{method: http.MethodGet, key: key, header: header}, func(res *http.Response) error {
		object = &Object{Header: res.Header, Length: res.ContentLength, Body: res.Body}
		return nil
	})
	return object, err
}

// Content is what Put and PutPart send, with its checksums in base64.
type Content struct {
	Data []byte
	MD5  string
	// CRC32C is left out if it is empty: not every service takes it.
	CRC32C string
	// Meta is kept with an object. Its keys are lower-case.
	Meta map[string]string
}

func (content *Content) request(key string, query url.Values) request {
	header := http.Header{"Content-Type": {"application/octet-stream"}, "Content-Md5": {content.MD5}}
	if content.CRC32C != "" {
		header.Set("X-Amz-Checksum-Crc32c", content.CRC32C)
	}
	for name, value := range content.Meta {
		header.Set("X-Amz-Meta-"+name, value)
	}
	return request{method: http.MethodPut, key: key, query: query, header: header, body: content.Data, opaque: true}
}

// Put sends an object. It returns the checksum that the service confirms, if it does.
func (c *Client) Put(ctx context.Context, key string, content Content) (crc32c string, err error) {
	header, err := c.send(ctx, content.request(key, nil))
	return header.Get("X-Amz-Checksum-Crc32c"), err
}

// Delete removes an object.
func (c *Client) Delete(ctx context.Context, key string) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, key: key})
	return err
}

// Undeleted is an object that DeleteAll could not remove, and why.
type Undeleted struct{ Key, Code, Message string }

// DeleteAll removes up to 1000 objects by one request.
func (c *Client) DeleteAll(ctx context.Context, keys []string) ([]Undeleted, error) {
	var w xmlWriter
	w.WriteString("<Delete" + namespace + ">")
	for _, key := range keys {
		w.WriteString("<Object>")
		w.field("Key", key)
		w.WriteString("</Object>")
	}
	w.WriteString("<Quiet>true</Quiet></Delete>")
	text := []byte(w.String())
	header := xmlHeader()
	// One checksum is a must: the old one for most services, the new one for a few.
	header.Set("Content-Md5", MD5(text))
	header.Set("X-Amz-Checksum-Crc32", base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(text))))
	answer, err := c.ask(ctx, request{method: http.MethodPost, query: url.Values{"delete": {""}}, header: header, body: text}, "DeleteResult")
	if err != nil {
		return nil, err
	}
	var left []Undeleted
	for _, e := range answer.inner {
		if e.is("Error") {
			left = append(left, Undeleted{e.find("Key"), e.find("Code"), e.find("Message")})
		}
	}
	return left, nil
}

func xmlHeader() http.Header { return http.Header{"Content-Type": {"application/xml"}} }

// MD5 returns the checksum that every service checks.
func MD5(data []byte) string {
	sum := md5.Sum(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// PresignGet returns an address to download an object from, without other credentials.
func (c *Client) PresignGet(ctx context.Context, key string, ttl time.Duration) (string, error) {
	return c.presign(ctx, http.MethodGet, key, ttl)
}

// PresignPut returns an address to upload an object to, without other credentials.
func (c *Client) PresignPut(ctx context.Context, key string, ttl time.Duration) (string, error) {
	return c.presign(ctx, http.MethodPut, key, ttl)
}
