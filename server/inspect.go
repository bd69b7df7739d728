package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/conversation/wirelimit"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
)

// inspectText limits the shown text of a blob or a field.
const inspectText = 64 << 10

// inspectRefs limits the shown references, about 100 bytes each.
const inspectRefs = 20_000

// Inspect shows one blob: its references, and its fields if it is a message.
func (s *conversationService) Inspect(ctx context.Context, req *stetv1.InspectRequest) (*stetv1.InspectResponse, error) {
	id, err := blob.IDFromBytes(req.GetId())
	if err != nil {
		return nil, err
	}
	kind, err := wire.ParseKind(req.GetKind())
	if err != nil {
		return nil, err
	}
	r, err := blob.Open(ctx, s.db.Blobs(), id) // verified while reading
	if err != nil {
		return nil, err
	}
	if kind.Message() == "" {
		return inspectBytes(r, kind)
	}
	data, err := wire.ReadMessage(r, id)
	if err != nil {
		return nil, err
	}
	res := &stetv1.InspectResponse{Kind: kind.String(), Size: int64(len(data)), HashOk: true}
	refs, err := graph.Refs(kind, data)
	if err != nil {
		return nil, wire.Error(graph.ErrMalformed, "this blob is not a %s: %v", kind, err)
	}
	for i, r := range refs {
		if i == inspectRefs {
			res.Truncated = true
			break
		}
		res.Fields = append(res.Fields, &stetv1.InspectField{Name: r.Field, Ref: r.ID.Bytes(), RefKind: r.Kind.String()})
	}
	return res, addFields(res, kind, data)
}

// inspectBytes shows the beginning of a blob that is not a message. It also reads the
// rest, to count and verify all of it.
func inspectBytes(r io.ReadCloser, kind graph.Kind) (res *stetv1.InspectResponse, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	data, err := io.ReadAll(io.LimitReader(r, inspectText+utf8.UTFMax))
	if err != nil {
		return nil, err
	}
	more, err := io.Copy(io.Discard, r)
	if err != nil {
		return nil, err
	}
	out := &stetv1.InspectResponse{Kind: kind.String(), Size: int64(len(data)) + more, HashOk: true}
	if more > 0 {
		data = wholeRunes(data)
	}
	out.Text, out.Truncated = clip(data)
	out.Truncated = out.Truncated || more > 0
	return out, nil
}

// wholeRunes drops a partial character at the end of a cut text.
func wholeRunes(text []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(text)); i++ {
		if at := len(text) - i; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}

// clip returns the shown part of a text.
func clip(data []byte) (string, bool) {
	if !utf8.Valid(data) {
		return "", len(data) > 0
	}
	if len(data) <= inspectText {
		return string(data), false
	}
	end := inspectText
	for !utf8.RuneStart(data[end]) {
		end--
	}
	return string(data[:end]), true
}

// addFields adds the fields of a message that are not references.
func addFields(res *stetv1.InspectResponse, kind graph.Kind, data []byte) error {
	known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(kind.Message()))
	if err != nil {
		return err
	}
	m := known.New().Interface()
	if err := wirelimit.Unmarshal(data, m, nil); err != nil {
		return wire.Error(graph.ErrMalformed, "%v", err)
	}
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Kind() == protoreflect.BytesKind {
			return true // shown as references
		}
		one := m.ProtoReflect().New()
		one.Set(f, v)
		value, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(one.Interface())
		if err != nil { // such as text that is not UTF-8
			value = fmt.Appendf(nil, "%d bytes", proto.Size(one.Interface()))
		}
		shown, _ := clip(value)
		res.Fields = append(res.Fields, &stetv1.InspectField{Number: uint32(f.Number()), Name: string(f.Name()), Value: shown})
		return true
	})
	return nil
}
