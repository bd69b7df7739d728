package cursor

import (
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// values returns the fields of a tool's input. Input that is not an object becomes
// one field.
func values(input Document, text string) map[string]*structpb.Value {
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
