// Package rowformat reads and writes the messages that rows hold. Each has a number for its
// format, so that a row of a newer release is refused and not taken for damaged or empty:
//
//	rec := new(stetv1.FrameRecord)
//	err := rowformat.Decode(row, rec, format)
//	set, err := rowformat.Set(key, rec)
//
// What a message means, and whether it belongs to its key, is left to the callers.
package rowformat

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/kv"
)

// Message is a message of a row.
type Message interface {
	proto.Message
	GetFormat() uint32
}

// Decode reads the message of a row. known is the latest format that the caller reads. It
// fails with kv.ErrCorrupt or kv.ErrNewerFormat.
func Decode(row kv.Row, into Message, known uint32) error {
	if err := proto.Unmarshal(row.Value, into); err != nil {
		return fmt.Errorf("%w: row %q: %w", kv.ErrCorrupt, row.Key, err)
	}
	return Check(row.Key, into.GetFormat(), known)
}

// Check fails as Decode does for a message that has another form in its row.
func Check(key string, format, known uint32) error {
	switch {
	case format == 0:
		return fmt.Errorf("%w: row %q has no format", kv.ErrCorrupt, key)
	case format > known:
		return fmt.Errorf("%w: row %q has %d; this release reads %d", kv.ErrNewerFormat, key, format, known)
	}
	return nil
}

// Set returns the change that gives a row a message. Equal messages give equal bytes.
func Set(key string, rec Message) (kv.Set, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(rec)
	if err != nil {
		return kv.Set{}, fmt.Errorf("encode row %q: %w", key, err)
	}
	return kv.Set{Key: key, Value: value}, nil
}
