package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/server"
)

// typedBinary is a codec that sends messages of protobuf as they were typed.
type typedBinary struct{ typed }

func (typedBinary) Name() string { return "proto" }

// nonsense returns values that a field should not have.
func nonsense(fd protoreflect.FieldDescriptor, file string) []protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return []protoreflect.Value{
			protoreflect.ValueOfString("?"), protoreflect.ValueOfString("../x"), protoreflect.ValueOfString("a\nb"),
			protoreflect.ValueOfString(file), protoreflect.ValueOfString(strings.Repeat("x", 5000)),
		}
	case protoreflect.BytesKind:
		return []protoreflect.Value{protoreflect.ValueOfBytes([]byte("short")), protoreflect.ValueOfBytes(make([]byte, 32))}
	case protoreflect.EnumKind:
		return []protoreflect.Value{protoreflect.ValueOfEnum(99)}
	case protoreflect.BoolKind:
		return []protoreflect.Value{protoreflect.ValueOfBool(true)}
	case protoreflect.Int64Kind:
		return []protoreflect.Value{protoreflect.ValueOfInt64(-1)}
	case protoreflect.Int32Kind:
		return []protoreflect.Value{protoreflect.ValueOfInt32(-1)}
	case protoreflect.Uint64Kind:
		return []protoreflect.Value{protoreflect.ValueOfUint64(1<<64 - 1)}
	case protoreflect.Uint32Kind:
		return []protoreflect.Value{protoreflect.ValueOfUint32(1<<32 - 1)}
	}
	return nil
}

// put sets a field, or the first entry of one, to a value.
func put(m protoreflect.Message, fd protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch {
	case fd.IsMap():
		if fd.MapKey().Kind() == protoreflect.StringKind && fd.MapValue().Kind() == protoreflect.StringKind {
			m.Mutable(fd).Map().Set(protoreflect.ValueOfString("../x").MapKey(), protoreflect.ValueOfString("?"))
		}
	case fd.IsList():
		m.Mutable(fd).List().Append(v)
	default:
		m.Set(fd, v)
	}
}

// mistaken calls fn with messages that have one wrong field, and with some that have
// many. Messages within messages are wrong in the same ways.
func mistaken(kind protoreflect.MessageType, file string, depth int, fn func(proto.Message)) {
	fn(kind.New().Interface())
	var many [5]protoreflect.Message
	for i := range many {
		many[i] = kind.New()
	}
	fields := kind.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if md := fd.Message(); md != nil && !fd.IsMap() {
			inner, err := protoregistry.GlobalTypes.FindMessageByName(md.FullName())
			if depth == 0 || err != nil {
				continue
			}
			mistaken(inner, file, depth-1, func(m proto.Message) {
				one := kind.New()
				put(one, fd, protoreflect.ValueOfMessage(m.ProtoReflect()))
				fn(one.Interface())
			})
			continue
		}
		values := nonsense(fd, file)
		if fd.IsMap() {
			values = []protoreflect.Value{{}}
		}
		for n, v := range values {
			one := kind.New()
			put(one, fd, v)
			fn(one.Interface())
			if n < len(many) {
				put(many[n], fd, v)
			}
		}
	}
	for _, m := range many {
		fn(m.Interface())
	}
}

// mistake reports what is wrong with an error of a call that has wrong arguments.
func mistake(err error) string {
	var wire *connect.Error
	switch {
	case !errors.As(err, &wire):
		return ""
	case wire.Code() == connect.CodeInternal || wire.Code() == connect.CodeUnknown:
		return "it fails with " + wire.Code().String()
	case wire.Code() != connect.CodeInvalidArgument:
		return ""
	case wire.Meta().Get("Stet-Error") == "":
		return "it has no reason"
	case wire.Meta().Get("Stet-Error-Class") == "":
		return "it has no class"
	}
	return ""
}

// Whatever is wrong with the arguments of a call, an INVALID_ARGUMENT has a reason.
func TestErrorsOfArgumentsHaveReasons(t *testing.T) {
	agent := agentrun.NewService(agentrun.ServeOptions{Agent: agentrun.AgentFunc(nil)})
	hc, base := dial(t, start(t, &server.Options{Token: token, Agent: agent}), token).HTTP()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	calls, refused := 0, 0
	for _, procedure := range server.Procedures() {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(procedure[1:], "/", ".")))
		if err != nil {
			t.Fatal(err)
		}
		method := d.(protoreflect.MethodDescriptor)
		streams := method.IsStreamingClient() || method.IsStreamingServer()
		kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		look := func(what string, opts ...connect.ClientOption) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := send(ctx, hc, base+procedure, what, streams, opts...)
			if calls++; connect.CodeOf(err) == connect.CodeInvalidArgument {
				refused++
			}
			if bad := mistake(err); bad != "" && !seen[bad] {
				seen[bad] = true // one example is enough
				t.Errorf("%s %.200q: %s: %v", procedure, what, bad, err)
			}
		}
		mistaken(kind, file, 2, func(m proto.Message) {
			text, err := protojson.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			look(string(text))
		})
		look("\xff", connect.WithCodec(typedBinary{}))
		look("\xff", connect.WithCodec(typedBinary{}), connect.WithGRPC())
	}
	if t.Log(fmt.Sprint(calls, " calls, ", refused, " of them refused")); refused < 300 {
		t.Errorf("only %d calls were refused", refused)
	}
}
