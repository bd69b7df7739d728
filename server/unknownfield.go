package server

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/fault"
	"github.com/stet-dev/stet/internal/spelling"
	"github.com/stet-dev/stet/server/internal/wire"
)

// errUnknownField says that a message in JSON has a field that its type does not have.
var errUnknownField = fault.Named(fault.Invalid, "unknown-field", "unknown field")

// An error of a codec cannot carry a reason to the caller: connect wraps it in its
// own error, and answers a unary call with that before any interceptor runs. The
// codecs therefore leave their errors in the message, as an unknown field, and the
// interceptor that codes errors takes it out.

// markField is a number that no message uses.
const markField = protowire.MaxValidNumber

// markSecret distinguishes errors of the codec from fields that a caller sent.
var markSecret = func() []byte {
	secret := make([]byte, 16)
	rand.Read(secret)
	return secret
}()

// markKinds are the errors that are left in messages, each marked by its place. The last
// one that an error is counts, and the first one if it is none of them.
var markKinds = []error{wirelimit.ErrMalformed, errUnknownField, wirelimit.ErrExceeded, wirelimit.ErrTooDeep}

// mark replaces the content of a message with an error.
func mark(m proto.Message, err error) {
	kind := 0
	for i, k := range markKinds {
		if errors.Is(err, k) {
			kind = i
		}
	}
	content := append(bytes.Clone(markSecret), byte(kind))
	content = append(content, err.Error()...)
	proto.Reset(m)
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, markField, protowire.BytesType), content))
}

// carry lets a message carry the error of a codec, if there is one: connect gives it the
// wrong code or no reason.
func carry(m proto.Message, err error) {
	if err != nil {
		mark(m, err)
	}
}

// marked returns the error that a message carries, or nil.
func marked(msg any) error {
	m, ok := msg.(proto.Message)
	if !ok {
		return nil
	}
	num, _, value, _, err := wirelimit.Next(m.ProtoReflect().GetUnknown())
	if err != nil || num != markField {
		return nil
	}
	value, ok = bytes.CutPrefix(value, markSecret)
	if !ok {
		return nil
	}
	return wire.Error(markKinds[value[0]], "%s", value[1:])
}

// explainJSON returns the error for JSON that the parser rejected with err. It names
// the first unknown field; other errors are the parser's.
func explainJSON(data []byte, md protoreflect.MessageDescriptor, err error) error {
	if found := (&fieldScan{json.NewDecoder(bytes.NewReader(data))}).message(md); errors.Is(found, errUnknownField) {
		return found
	}
	return fmt.Errorf("%w: %s: %w", wirelimit.ErrMalformed, md.FullName(), err)
}

// fieldScan reads JSON along with the type of its message. Its methods read one value
// each, and fail for an unknown field, or where the parser also fails.
type fieldScan struct{ in *json.Decoder }

func (s *fieldScan) message(md protoreflect.MessageDescriptor) error {
	return s.each('{', func() error {
		token, err := s.in.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		fd := md.Fields().ByJSONName(name)
		if fd == nil {
			fd = md.Fields().ByTextName(name)
		}
		if fd == nil {
			return unknownField(name, md)
		}
		return s.field(fd)
	})
}

func (s *fieldScan) field(fd protoreflect.FieldDescriptor) error {
	switch {
	case fd.IsMap():
		return s.each('{', func() error {
			if _, err := s.in.Token(); err != nil { // the key
				return err
			}
			return s.value(fd.MapValue())
		})
	case fd.IsList():
		return s.each('[', func() error { return s.value(fd) })
	}
	return s.value(fd)
}

// value reads one value of a field. The messages of google.protobuf have JSON forms
// of their own, which may contain any names.
func (s *fieldScan) value(fd protoreflect.FieldDescriptor) error {
	if md := fd.Message(); md != nil && (md.ParentFile().Package() != "google.protobuf" || md.Fields().Len() == 0) {
		return s.message(md)
	}
	var skipped json.RawMessage
	return s.in.Decode(&skipped)
}

// each calls fn for each entry of an object or a list. It also accepts null.
func (s *fieldScan) each(open json.Delim, fn func() error) error {
	token, err := s.in.Token()
	if err != nil || token == nil {
		return err
	}
	if token != open {
		return wirelimit.ErrMalformed
	}
	for s.in.More() {
		if err := fn(); err != nil {
			return err
		}
	}
	_, err = s.in.Token()
	return err
}

const (
	// maxNamed is how much of an unknown name an error repeats.
	maxNamed = 64
	// maxListed is how many fields an error lists.
	maxListed = 12
)

func unknownField(name string, md protoreflect.MessageDescriptor) error {
	var names, all []string
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		names = append(names, fd.JSONName())
		all = append(all, fd.JSONName(), fd.TextName())
	}
	hint := ""
	switch near := spelling.Nearest(name, all); {
	case near != "":
		hint = fmt.Sprintf("; did you mean %q?", near)
	case len(names) == 0:
		hint = "; it has none"
	case len(names) <= maxListed:
		hint = "; it has " + strings.Join(names, ", ")
	}
	if len(name) > maxNamed {
		name = strings.ToValidUTF8(name[:maxNamed], "") + "…"
	}
	return fmt.Errorf("%w: %s has no field %q%s", errUnknownField, md.FullName(), name, hint)
}
