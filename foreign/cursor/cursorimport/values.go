package cursorimport

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stet-dev/stet/foreign/cursor"
)

// encode encodes a value that was decoded from JSON, which cannot fail.
func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("cursorimport: encode a decoded row: " + err.Error())
	}
	return data
}

// values returns the fields of a tool's input. Input that is not an object becomes
// one field.
func values(input cursor.Document, text string) map[string]*structpb.Value {
	if input == nil {
		if text == "" {
			return nil
		}
		return map[string]*structpb.Value{"input": structpb.NewStringValue(text)}
	}
	out := make(map[string]*structpb.Value, len(input))
	for field, raw := range input {
		value := &structpb.Value{}
		if err := protojson.Unmarshal(raw, value); err != nil {
			value = structpb.NewStringValue(string(raw)) // numbers that do not fit a double
		}
		out[field] = value
	}
	return out
}
