// Package wirelimit measures a protobuf message on the wire before anything is
// allocated for it.
//
// A few bytes of protobuf can require much memory: an empty list entry takes two
// bytes on the wire and a hundred in memory, and messages may nest thousands of
// times. Check walks the bytes with the message's descriptor, allocates almost
// nothing, and rejects what exceeds the limits; Unmarshal checks, then parses:
//
//	var s agentv1.ConversationStateStructure
//	err := wirelimit.Unmarshal(data, &s, nil)
//	if errors.Is(err, wirelimit.ErrExceeded) { … hostile or far too large … }
//
// It does not check what the fields mean or whether ids in them exist.
package wirelimit

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stet-dev/stet/fault"
)

var (
	// ErrExceeded says that a message is larger or deeper, or has more entries, than
	// allowed.
	ErrExceeded = fault.Named(fault.Exhausted, "limit-exceeded", "message exceeds limits")
	// ErrTooDeep says, besides ErrExceeded, that too many messages of one type are nested
	// in each other.
	ErrTooDeep = fault.Named(fault.Exhausted, "too-deep", "nested too deep")
	// ErrMalformed says that bytes are not a protobuf message.
	ErrMalformed = fault.Named(fault.Invalid, "malformed-message", "malformed message")
)

// Limits are what Check allows; a zero field means its default.
type Limits struct {
	// Bytes is the longest message, 4 MiB by default.
	Bytes int
	// Entries is the largest number of entries of one repeated or map field of one
	// message, 100,000 by default.
	Entries int
	// Nested is how deep messages of one type may nest below the outermost, 32 by
	// default. It limits subagents within subagents.
	Nested int
	// Depth is how deep messages of any type may nest, 200 by default.
	Depth int
	// MapKey is the longest text key of a map, for example a path, 4,096 by default.
	MapKey int
	// Memory limits the estimated memory of the parsed message, 48 MiB by default.
	Memory int64
}

// defaults keep the growth of the heap for any message under 64 MiB.
var defaults = Limits{
	Bytes:   4 << 20,
	Entries: 100_000,
	Nested:  32,
	Depth:   200,
	MapKey:  4096,
	Memory:  48 << 20,
}

// withDefaults fills in zero fields; l may be nil.
func (l *Limits) withDefaults() Limits {
	if l == nil {
		return defaults
	}
	out := *l
	out.Bytes = or(out.Bytes, defaults.Bytes)
	out.Entries = or(out.Entries, defaults.Entries)
	out.Nested = or(out.Nested, defaults.Nested)
	out.Depth = or(out.Depth, defaults.Depth)
	out.MapKey = or(out.MapKey, defaults.MapKey)
	out.Memory = or(out.Memory, defaults.Memory)
	return out
}

func or[T int | int64](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}

// Unmarshal checks data and parses it into m. Nothing is parsed if the check
// fails.
func Unmarshal(data []byte, m proto.Message, limits *Limits) error {
	if err := Check(data, m.ProtoReflect().Descriptor(), limits); err != nil {
		return err
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMalformed, m.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}

// Check reports whether data is a message of the given type within the limits, which
// may be nil. It does not examine unknown fields: they are kept as bytes and take no
// more memory than that.
func Check(data []byte, md protoreflect.MessageDescriptor, limits *Limits) error {
	c := checker{limits: limits.withDefaults(), onPath: make(map[protoreflect.FullName]int)}
	if len(data) > c.limits.Bytes {
		return fmt.Errorf("%w: %d bytes; the limit is %d", ErrExceeded, len(data), c.limits.Bytes)
	}
	return c.message(data, md, 0)
}

type checker struct {
	limits Limits
	memory int64
	onPath map[protoreflect.FullName]int // nesting depth of each type around the current bytes
}

func (c *checker) message(data []byte, md protoreflect.MessageDescriptor, depth int) error {
	name := md.FullName()
	if depth > c.limits.Depth {
		return fmt.Errorf("%w: messages nest deeper than %d", ErrExceeded, c.limits.Depth)
	}
	if c.onPath[name] > c.limits.Nested {
		return fmt.Errorf("%w: %w: more than %d %s", ErrExceeded, ErrTooDeep, c.limits.Nested, name)
	}
	if err := c.spend(sizeOf(md)); err != nil {
		return err
	}
	c.onPath[name]++
	defer func() { c.onPath[name]-- }()

	var counts map[protowire.Number]int
	for len(data) > 0 {
		num, typ, value, rest, err := Next(data)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrMalformed, name, err)
		}
		data = rest
		fd := md.Fields().ByNumber(num)
		if fd == nil {
			if err := c.spend(int64(len(value)) + 8); err != nil {
				return err
			}
			continue
		}
		if fd.Cardinality() == protoreflect.Repeated {
			if counts == nil {
				counts = make(map[protowire.Number]int)
			}
			counts[num] += entries(fd, typ, value)
			if counts[num] > c.limits.Entries {
				return fmt.Errorf("%w: %s has more than %d entries", ErrExceeded, fd.FullName(), c.limits.Entries)
			}
		}
		if err := c.field(fd, typ, value, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) field(fd protoreflect.FieldDescriptor, typ protowire.Type, value []byte, depth int) error {
	if fd.Message() != nil {
		if typ != protowire.BytesType {
			return c.spend(int64(len(value)))
		}
		if fd.IsMap() {
			if err := c.mapKey(fd, value); err != nil {
				return err
			}
		}
		return c.message(value, fd.Message(), depth+1)
	}
	cost := int64(len(value))
	if fd.Cardinality() == protoreflect.Repeated {
		cost += 8 * int64(entries(fd, typ, value))
		if typ == protowire.BytesType {
			cost += 24 // the slice header of a bytes entry, which is more than a string's
		}
	}
	return c.spend(cost)
}

func (c *checker) mapKey(fd protoreflect.FieldDescriptor, entry []byte) error {
	if fd.MapKey().Kind() != protoreflect.StringKind {
		return nil
	}
	for len(entry) > 0 {
		num, typ, value, rest, err := Next(entry)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrMalformed, fd.FullName(), err)
		}
		if num == 1 && typ == protowire.BytesType && len(value) > c.limits.MapKey {
			return fmt.Errorf("%w: a key of %s has %d bytes; the limit is %d", ErrExceeded, fd.FullName(), len(value), c.limits.MapKey)
		}
		entry = rest
	}
	return nil
}

func (c *checker) spend(n int64) error {
	c.memory += n
	if c.memory > c.limits.Memory {
		return fmt.Errorf("%w: it would take more than %d bytes of memory", ErrExceeded, c.limits.Memory)
	}
	return nil
}
