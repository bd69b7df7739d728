package wirelimit

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Next splits the first field off data. For a length-delimited field value is
// its content, for others the bytes of the value. value and rest share data's
// memory.
func Next(data []byte) (num protowire.Number, typ protowire.Type, value, rest []byte, err error) {
	// Nearly every field of a long list has a tag and a length of one byte.
	if len(data) >= 2 && data[0] >= 8 && data[0] < 0x80 && data[0]&7 == byte(protowire.BytesType) && data[1] < 0x80 {
		if end := 2 + int(data[1]); end <= len(data) {
			return protowire.Number(data[0] >> 3), protowire.BytesType, data[2:end:end], data[end:], nil
		}
	}
	num, typ, n := protowire.ConsumeTag(data)
	if n < 0 {
		return 0, 0, nil, nil, protowire.ParseError(n)
	}
	data = data[n:]
	if typ == protowire.BytesType {
		v, m := protowire.ConsumeBytes(data)
		if m < 0 {
			return 0, 0, nil, nil, protowire.ParseError(m)
		}
		return num, typ, v, data[m:], nil
	}
	m := protowire.ConsumeFieldValue(num, typ, data)
	if m < 0 {
		return 0, 0, nil, nil, protowire.ParseError(m)
	}
	return num, typ, data[:m], data[m:], nil
}

// entries returns how many list entries one field on the wire holds: many if numbers
// are packed.
func entries(fd protoreflect.FieldDescriptor, typ protowire.Type, value []byte) int {
	if typ != protowire.BytesType || fd.Message() != nil {
		return 1
	}
	switch fd.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return 1
	case protoreflect.DoubleKind, protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return len(value) / 8
	case protoreflect.FloatKind, protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return len(value) / 4
	}
	n := 0
	for _, b := range value {
		if b < 0x80 { // the last byte of a varint
			n++
		}
	}
	return n
}

var sizes sync.Map // protoreflect.FullName → int64

// sizeOf estimates the memory of an empty message of a type: its struct, rounded up,
// and the pointer to it.
func sizeOf(md protoreflect.MessageDescriptor) int64 {
	if n, ok := sizes.Load(md.FullName()); ok {
		return n.(int64)
	}
	n := int64(64)
	if md.IsMapEntry() {
		n = 128 // key, value and a map's overhead
	}
	for i := range md.Fields().Len() {
		switch fd := md.Fields().Get(i); {
		case fd.IsList() || fd.Kind() == protoreflect.BytesKind:
			n += 24
		case fd.Kind() == protoreflect.StringKind:
			n += 16
		default:
			n += 8
		}
	}
	n += n / 4 // size classes of the allocator
	sizes.Store(md.FullName(), n)
	return n
}
