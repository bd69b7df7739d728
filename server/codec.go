package server

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/fault"
)

var errNoMessage = fault.New(fault.Invalid, "not a protobuf message")

// binary is connect's codec for protobuf with limits that are checked before parsing:
// a few bytes can require much memory.
type binary struct{}

func (binary) Name() string { return "proto" }

// shared is a message that many streams send and that is encoded once for all of
// them.
type shared interface {
	Encoded(codec string, encode func() ([]byte, error)) ([]byte, error)
}

func (b binary) Marshal(msg any) ([]byte, error) { return b.MarshalAppend(nil, msg) }

// MarshalAppend saves connect an allocation.
func (binary) MarshalAppend(dst []byte, msg any) ([]byte, error) {
	m, ok := msg.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	if s, ok := msg.(shared); ok {
		data, err := s.Encoded("proto", func() ([]byte, error) { return proto.Marshal(m) })
		return append(dst, data...), err
	}
	return proto.MarshalOptions{}.MarshalAppend(dst, m)
}

func (binary) Unmarshal(data []byte, msg any) error {
	m, ok := msg.(proto.Message)
	if !ok {
		return errNoMessage
	}
	carry(m, wirelimit.Unmarshal(data, m, nil))
	return nil
}

// text is connect's codec for JSON with the same limits.
type text struct{ name string }

func (t text) Name() string { return t.name }

func (text) Marshal(msg any) ([]byte, error) {
	m, ok := msg.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	if s, ok := msg.(shared); ok {
		data, err := s.Encoded("json", func() ([]byte, error) { return protojson.Marshal(m) })
		return bytes.Clone(data), err // the caller uses it as a buffer
	}
	return protojson.Marshal(m)
}

// Unmarshal rejects unknown fields: they are usually mistyped, and would be ignored
// otherwise. Protobuf still accepts them.
func (text) Unmarshal(data []byte, msg any) error {
	m, ok := msg.(proto.Message)
	if !ok {
		return errNoMessage
	}
	if err := checkJSON(data); err != nil {
		carry(m, err)
		return nil
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		mark(m, explainJSON(data, m.ProtoReflect().Descriptor(), err))
		return nil
	}
	raw, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	carry(m, wirelimit.Check(raw, m.ProtoReflect().Descriptor(), nil))
	return nil
}

// Limits of JSON before it is parsed. They limit memory and time; the message is
// measured afterwards, as for protobuf.
const (
	jsonDepth  = 200
	jsonValues = 120_000
)

// checkJSON counts values and nesting by brackets and commas outside of strings. The
// parser checks the syntax.
func checkJSON(data []byte) error {
	depth, values := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = stringEnd(data, i)
		case '{', '[':
			depth++
			values++
		case '}', ']':
			depth--
		case ',':
			values++
		}
		if depth > jsonDepth || values > jsonValues {
			return fmt.Errorf("%w: more than %d levels or %d values", wirelimit.ErrExceeded, jsonDepth, jsonValues)
		}
	}
	return nil
}

// stringEnd returns where the string that begins at start ends, or the end of the
// data if it does not.
func stringEnd(data []byte, start int) int {
	for i := start + 1; ; i++ {
		n := bytes.IndexAny(data[min(i, len(data)):], `"\`)
		if n < 0 {
			return len(data)
		}
		i += n
		if data[i] == '"' {
			return i
		}
		i++ // the escaped character
	}
}
