package transcript

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
)

// noise are fields of no use to readers: ids shown elsewhere and values derived from
// other fields.
var noise = map[protoreflect.Name]bool{
	"tool_call_id": true, "parsing_result": true, "simple_commands": true, "has_input_redirect": true,
	"has_output_redirect": true, "classifier_result": true,
}

// plain returns the populated fields of a message as JSON values. Unlike the
// canonical JSON form it never fails, and numbers stay numbers.
func plain(m protoreflect.Message) any {
	switch v := m.Interface().(type) {
	case *structpb.Value:
		return v.AsInterface()
	case *structpb.Struct:
		return v.AsMap()
	}
	out := make(map[string]any)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if !noise[f.Name()] {
			out[string(f.Name())] = plainField(f, v)
		}
		return true
	})
	return out
}

func plainField(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch {
	case f.IsMap():
		out := make(map[string]any, v.Map().Len())
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			out[k.String()] = plainValue(f.MapValue(), v)
			return true
		})
		return out
	case f.IsList():
		out := make([]any, v.List().Len())
		for i := range out {
			out[i] = plainValue(f, v.List().Get(i))
		}
		return out
	}
	return plainValue(f, v)
}

func plainValue(f protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return plain(v.Message())
	case protoreflect.EnumKind:
		if e := f.Enum().Values().ByNumber(v.Enum()); e != nil {
			return string(e.Name())
		}
		return int64(v.Enum())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		if n := v.Float(); math.IsNaN(n) || math.IsInf(n, 0) {
			return fmt.Sprint(n) // JSON has no such numbers
		}
	case protoreflect.BytesKind:
		return fmt.Sprintf("[%d bytes]", len(v.Bytes()))
	}
	return v.Interface()
}

// indented is JSON for people. It does not fail, because values come from plain.
func indented(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// guessDepth limits how deep guess looks into unknown fields.
const guessDepth = 8

// guess reads an encoded message without knowing its definition. Fields are named by
// their numbers; bytes become text if they are text, else a message if they decode as
// one. It returns false if data is not a message.
func guess(data []byte, depth int) (map[string]any, bool) {
	out := make(map[string]any)
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, false
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(num, typ, data)
		if n < 0 {
			return nil, false
		}
		key, v := strconv.Itoa(int(num)), guessValue(typ, data[:n], depth)
		switch old := out[key].(type) {
		case nil:
			out[key] = v
		case []any:
			out[key] = append(old, v)
		default:
			out[key] = []any{old, v}
		}
		data = data[n:]
	}
	return out, true
}

func guessValue(typ protowire.Type, raw []byte, depth int) any {
	switch typ {
	case protowire.VarintType:
		v, _ := protowire.ConsumeVarint(raw)
		return v
	case protowire.BytesType:
		v, _ := protowire.ConsumeBytes(raw)
		// The tag of a first field is a control character; text rarely begins
		// with one.
		if isText(v) && (len(v) == 0 || v[0] >= ' ') {
			return string(v)
		}
		if depth < guessDepth {
			if m, ok := guess(v, depth+1); ok {
				return m
			}
		}
		if isText(v) {
			return string(v)
		}
		return fmt.Sprintf("[%d bytes]", len(v))
	}
	return fmt.Sprintf("[%d bytes]", len(raw))
}

func isText(v []byte) bool {
	if !utf8.Valid(v) {
		return false
	}
	for _, c := range v {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return true
}
