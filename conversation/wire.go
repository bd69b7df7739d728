package conversation

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// bytesRecord encodes a length-delimited field.
func bytesRecord(num protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(make([]byte, 0, len(value)+8), num, protowire.BytesType), value)
}

// entryRecord encodes an entry of a map with text keys.
func entryRecord(num protowire.Number, key string, value []byte) []byte {
	entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
	entry = protowire.AppendBytes(protowire.AppendTag(entry, 2, protowire.BytesType), value)
	return bytesRecord(num, entry)
}
