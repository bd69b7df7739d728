package conversation

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
)

// Content is immutable bytes and their id. The zero Content means "none", which
// differs from empty bytes. A Content without loaded bytes has only its id.
type Content struct {
	id     blob.ID
	data   []byte
	loaded bool
}

// NewContent returns the content with a copy of the given bytes.
func NewContent(data []byte) Content { return loadedContent(bytes.Clone(data)) }

// loadedContent keeps data.
func loadedContent(data []byte) Content {
	return Content{id: blob.Sum(data), data: data, loaded: true}
}

// ContentOf returns the content with the given id, without its bytes.
func ContentOf(id blob.ID) Content { return Content{id: id} }

// ID returns the SHA-256 of the bytes, or zero for none.
func (c Content) ID() blob.ID { return c.id }

// IsNone reports whether c is the zero Content.
func (c Content) IsNone() bool { return c.id.IsZero() }

// Loaded reports whether c has its bytes.
func (c Content) Loaded() bool { return c.loaded }

// Bytes returns a copy of the bytes, nil if they were not loaded.
func (c Content) Bytes() []byte { return bytes.Clone(c.data) }

// Len returns the number of bytes, 0 if they were not loaded.
func (c Content) Len() int { return len(c.data) }

// bytes32 returns the bytes of the id, nil for none.
func (c Content) bytes32() []byte {
	if c.IsNone() {
		return nil
	}
	return c.id.Bytes()
}

// Item is a Content that encodes a message. It keeps the hashed bytes, so that
// unknown fields, and the field order of another writer, survive.
type Item[M proto.Message] struct{ Content }

// NewItem encodes a message.
func NewItem[M proto.Message](m M) (Item[M], error) {
	data, err := marshal(m)
	if err != nil {
		return Item[M]{}, err
	}
	return Item[M]{loadedContent(data)}, nil
}

// ItemOf returns the item with the given id, without its bytes.
func ItemOf[M proto.Message](id blob.ID) Item[M] { return Item[M]{ContentOf(id)} }

// Decode returns the message, which the caller may change.
func (i Item[M]) Decode() (M, error) {
	var none M
	m := none.ProtoReflect().New().Interface().(M)
	if !i.loaded {
		return none, fmt.Errorf("decode %s %s: its bytes were not loaded", m.ProtoReflect().Descriptor().Name(), i.id.Short())
	}
	if err := wirelimit.Unmarshal(i.data, m, partLimits); err != nil {
		return none, fmt.Errorf("decode %s %s: %w", m.ProtoReflect().Descriptor().Name(), i.id.Short(), err)
	}
	return m, nil
}

// partLimits are the limits for the parts of a state: a step may hold the output of a
// tool, which is larger than other messages.
var partLimits = &wirelimit.Limits{Bytes: 64 << 20, Memory: 256 << 20}

// marshal encodes all messages that this package hashes or compares.
func marshal(m proto.Message) ([]byte, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, invalid("encode %s: %v", m.ProtoReflect().Descriptor().Name(), err)
	}
	return data, nil
}
