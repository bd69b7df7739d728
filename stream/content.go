package stream

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// DefaultType is the content type of a stream that was created without one.
const DefaultType = "application/octet-stream"

// MediaType returns the part of a content type that must match: without parameters, in
// lower case.
func MediaType(contentType string) string {
	name, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(name))
}

// IsJSON reports whether streams of a content type hold JSON messages. An append to them
// is one message, or an array of messages, and they are read as an array.
func IsJSON(contentType string) bool { return MediaType(contentType) == "application/json" }

// content is what an append stores.
type content struct {
	data     []byte
	messages uint64 // of JSON
}

// contentOf returns what is stored for a body: the body itself or, for JSON, its
// messages separated by commas. An empty array has no content.
func contentOf(contentType string, body []byte) (content, error) {
	if !IsJSON(contentType) || len(body) == 0 {
		return content{data: body}, nil
	}
	if !json.Valid(body) || !utf8.Valid(body) {
		return content{}, invalid("the body is not JSON")
	}
	body = bytes.TrimSpace(body)
	if body[0] != '[' {
		return content{data: body, messages: 1}, nil
	}
	parts, err := split(body)
	if err != nil {
		return content{}, err
	}
	return content{data: join(parts), messages: uint64(len(parts))}, nil
}

// split returns the messages of an array.
func split(array []byte) ([][]byte, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(array, &parts); err != nil {
		return nil, invalid("the body is not JSON: %v", err)
	}
	out := make([][]byte, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out, nil
}

func join(parts [][]byte) []byte { return bytes.Join(parts, []byte{','}) }

// Body returns the contents of appends as one body: concatenated or, for JSON, as an
// array.
func Body(contentType string, appends []Content) []byte {
	parts := make([][]byte, len(appends))
	for i, a := range appends {
		parts[i] = a.Data
	}
	if !IsJSON(contentType) {
		return bytes.Join(parts, nil)
	}
	return append(append([]byte{'['}, join(parts)...), ']')
}

// first returns the first n messages of JSON content, or the first n bytes of other
// content. ok is false if it has fewer.
func (c content) first(n uint64) (part content, ok bool) {
	if c.messages == 0 {
		if n > uint64(len(c.data)) {
			return content{}, false
		}
		return content{data: c.data[:n]}, true
	}
	if n > c.messages {
		return content{}, false
	}
	parts, err := split(append(append([]byte{'['}, c.data...), ']'))
	if err != nil || uint64(len(parts)) < n {
		return content{}, false
	}
	return content{data: join(parts[:n]), messages: n}, true
}
