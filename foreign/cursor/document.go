package cursor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Document is a JSON object whose fields are decoded one by one: releases change the
// types of fields, and one unexpected field must not lose the whole row.
type Document map[string]json.RawMessage

// ParseDocument reads a JSON object. For anything else the error wraps ErrMalformed.
func ParseDocument(data []byte) (Document, error) {
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if d == nil {
		return nil, fmt.Errorf("%w: not a JSON object", ErrMalformed)
	}
	return d, nil
}

// Object returns an object field, or nil.
func (d Document) Object(field string) Document {
	sub, err := ParseDocument(d[field])
	if err != nil {
		return nil
	}
	return sub
}

// Text returns a string field, or "".
func (d Document) Text(field string) string {
	var s string
	if json.Unmarshal(d[field], &s) != nil {
		return ""
	}
	return s
}

// anyText returns a string field, or the JSON text of another type.
func (d Document) anyText(field string) string {
	raw := bytes.TrimSpace(d[field])
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return ""
	}
	if raw[0] == '"' {
		return d.Text(field)
	}
	return string(raw)
}

// Flag returns a boolean field, or false. Numbers are true unless zero.
func (d Document) Flag(field string) bool {
	var b bool
	if json.Unmarshal(d[field], &b) == nil {
		return b
	}
	n, ok := d.Number(field)
	return ok && n != 0
}

// Number returns a number field.
func (d Document) Number(field string) (float64, bool) {
	raw := d[field]
	var n float64
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, &n) != nil {
		return 0, false
	}
	return n, true
}

// Integer returns a number field as an int, or 0.
func (d Document) Integer(field string) int {
	n, ok := d.Number(field)
	if !ok || math.Abs(n) > 1<<53 {
		return 0
	}
	return int(n)
}

// time returns a time field: milliseconds since 1970, or RFC 3339.
func (d Document) time(field string) time.Time {
	if n, ok := d.Number(field); ok {
		return millis(n)
	}
	return parseTime(d.Text(field))
}

// list returns the items of an array field.
func (d Document) list(field string) []json.RawMessage {
	var items []json.RawMessage
	if json.Unmarshal(d[field], &items) != nil {
		return nil
	}
	return items
}

// texts returns the strings of an array field.
func (d Document) texts(field string) []string {
	var out []string
	for _, item := range d.list(field) {
		var s string
		if json.Unmarshal(item, &s) == nil {
			out = append(out, s)
		}
	}
	return out
}

// clone returns a copy whose fields can be replaced.
func (d Document) clone() Document {
	out := make(Document, len(d))
	for k, v := range d {
		out[k] = v
	}
	return out
}

// millis converts milliseconds since 1970 to a time; zero and invalid values give the
// zero time.
func millis(n float64) time.Time {
	if n == 0 || math.IsNaN(n) || math.Abs(n) > 1e15 {
		return time.Time{}
	}
	return sensible(time.UnixMilli(int64(n)).UTC())
}

// sensible returns the zero time for one that JSON cannot represent.
func sensible(t time.Time) time.Time {
	if t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return sensible(t.UTC())
}
