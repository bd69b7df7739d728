package server

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// gRPC server reflection shows tools such as grpcurl what a server offers. Its
// libraries parse descriptors at program start, which takes some milliseconds even
// for commands that serve nothing. Here a descriptor is looked up on request.
//
// The messages are read and written by hand: generated code would register names that
// grpc-go also registers, and a program with both would not start.

// Fields of grpc.reflection.v1, which are those of v1alpha.
const (
	requestHost                protowire.Number = 1
	requestFileByName          protowire.Number = 3
	requestFileOfSymbol        protowire.Number = 4
	requestFileOfExtension     protowire.Number = 5
	requestExtensionsOfMessage protowire.Number = 6
	requestServices            protowire.Number = 7

	responseHost       protowire.Number = 1
	responseRequest    protowire.Number = 2
	responseFiles      protowire.Number = 4
	responseExtensions protowire.Number = 5
	responseServices   protowire.Number = 6
	responseError      protowire.Number = 7
)

// maxReflectionRequest is far above the longest name.
const maxReflectionRequest = 64 << 10

// reflection returns the handlers of both versions by their paths.
func reflection(services []string) map[string]http.Handler {
	handlers := make(map[string]http.Handler)
	for _, version := range []string{"v1", "v1alpha"} {
		path := "/grpc.reflection." + version + ".ServerReflection/"
		handlers[path] = connect.NewBidiStreamHandler(path+"ServerReflectionInfo",
			func(_ context.Context, stream *connect.BidiStream[reflectionRequest, reflectionResponse]) error {
				return answerReflection(stream, services)
			},
			connect.WithCodec(reflectionCodec{}), connect.WithReadMaxBytes(maxReflectionRequest))
	}
	return handlers
}

func answerReflection(stream *connect.BidiStream[reflectionRequest, reflectionResponse], services []string) error {
	sent := make(map[string]bool)
	for {
		request, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return received(err)
		}
		number, body, err := request.answer(services, sent)
		switch {
		case errors.Is(err, errNoQuestion):
			return wireError(err)
		case err != nil:
			number = responseError
			body = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(connect.CodeNotFound))
			body = appendField(body, 2, []byte(err.Error()))
		}
		var wire []byte
		if len(request.host) > 0 {
			wire = appendField(wire, responseHost, request.host)
		}
		wire = appendField(wire, responseRequest, request.wire)
		if err := stream.Send(&reflectionResponse{appendField(wire, number, body)}); err != nil {
			return err
		}
	}
}

var errNoQuestion = invalid("unknown reflection request")

// answer returns a field of the response. sent holds the files that the peer has.
func (r *reflectionRequest) answer(services []string, sent map[string]bool) (protowire.Number, []byte, error) {
	switch r.asks {
	case requestServices:
		var body []byte
		for _, name := range services {
			body = appendField(body, 1, appendField(nil, 1, []byte(name)))
		}
		return responseServices, body, nil
	case requestExtensionsOfMessage:
		body, err := extensionsOf(protoreflect.FullName(r.name))
		return responseExtensions, body, err
	case requestFileByName:
		body, err := fileByName(r.name, sent)
		return responseFiles, body, err
	case requestFileOfSymbol:
		body, err := fileOfSymbol(protoreflect.FullName(r.name), sent)
		return responseFiles, body, err
	case requestFileOfExtension:
		x, err := protoregistry.GlobalTypes.FindExtensionByNumber(protoreflect.FullName(r.name), r.extension)
		if err != nil {
			return 0, nil, fmt.Errorf("extension %d of message %q: %w", r.extension, r.name, err)
		}
		body, err := withImports(x.TypeDescriptor().ParentFile(), sent)
		return responseFiles, body, err
	}
	return 0, nil, errNoQuestion
}

func extensionsOf(message protoreflect.FullName) ([]byte, error) {
	if _, err := protoregistry.GlobalFiles.FindDescriptorByName(message); err != nil {
		return nil, fmt.Errorf("message %q: %w", message, err)
	}
	var numbers []protoreflect.FieldNumber
	protoregistry.GlobalTypes.RangeExtensionsByMessage(message, func(x protoreflect.ExtensionType) bool {
		numbers = append(numbers, x.TypeDescriptor().Number())
		return true
	})
	slices.Sort(numbers)
	body := appendField(nil, 1, []byte(message))
	for _, n := range numbers {
		body = protowire.AppendVarint(protowire.AppendTag(body, 2, protowire.VarintType), uint64(n))
	}
	return body, nil
}

// A library serves the health service under its usual name, but registers it under
// another. These are the usual name and descriptor.
const healthName = "grpc/health/v1/health.proto"

//go:embed health.binpb
var healthDescriptor []byte

func fileByName(name string, sent map[string]bool) ([]byte, error) {
	file, err := protoregistry.GlobalFiles.FindFileByPath(name)
	if err != nil && name == healthName {
		return appendField(nil, 1, healthDescriptor), nil
	}
	if err != nil {
		return nil, fmt.Errorf("file %q: %w", name, err)
	}
	return withImports(file, sent)
}

func fileOfSymbol(name protoreflect.FullName, sent map[string]bool) ([]byte, error) {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err == nil {
		return withImports(d.ParentFile(), sent)
	}
	if d, err := protoregistry.GlobalFiles.FindDescriptorByName("connectext." + name); err == nil && d.ParentFile().Path() == "connectext/"+healthName {
		return appendField(nil, 1, healthDescriptor), nil
	}
	return nil, fmt.Errorf("symbol %q: %w", name, err)
}

// withImports returns a file, and those that it imports unless they were sent.
func withImports(root protoreflect.FileDescriptor, sent map[string]bool) ([]byte, error) {
	var body []byte
	seen := map[string]bool{root.Path(): true}
	for queue := []protoreflect.FileDescriptor{root}; len(queue) > 0; queue = queue[1:] {
		file := queue[0]
		if file == root || !sent[file.Path()] {
			raw, err := descriptorOf(file)
			if err != nil {
				return nil, err
			}
			sent[file.Path()] = true
			body = appendField(body, 1, raw)
		}
		for i := range file.Imports().Len() {
			if next := file.Imports().Get(i); !seen[next.Path()] {
				seen[next.Path()] = true
				queue = append(queue, next.FileDescriptor)
			}
		}
	}
	return body, nil
}

// descriptorOf returns a file's descriptor, which generated code provides for each
// message and enum. Package protodesc could make one for any file, but parses some at
// program start.
func descriptorOf(file protoreflect.FileDescriptor) ([]byte, error) {
	var zipped []byte
	if file.Messages().Len() > 0 {
		if t, err := protoregistry.GlobalTypes.FindMessageByName(file.Messages().Get(0).FullName()); err == nil {
			if m, ok := t.Zero().Interface().(interface{ Descriptor() ([]byte, []int) }); ok {
				zipped, _ = m.Descriptor()
			}
		}
	} else if file.Enums().Len() > 0 {
		if t, err := protoregistry.GlobalTypes.FindEnumByName(file.Enums().Get(0).FullName()); err == nil {
			if e, ok := t.New(0).(interface{ EnumDescriptor() ([]byte, []int) }); ok {
				zipped, _ = e.EnumDescriptor()
			}
		}
	}
	if zipped == nil {
		return nil, fmt.Errorf("file %q has no descriptor here", file.Path())
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("descriptor of file %q: %w", file.Path(), err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("descriptor of file %q: %w", file.Path(), err)
	}
	return raw, nil
}

// reflectionRequest is a grpc.reflection.v1.ServerReflectionRequest.
type reflectionRequest struct {
	wire      []byte // all of it: the response repeats it
	host      []byte
	asks      protowire.Number // kind of the request, 0 if unknown
	name      string
	extension protowire.Number
}

// reflectionResponse is an encoded grpc.reflection.v1.ServerReflectionResponse.
type reflectionResponse struct{ wire []byte }

func (r *reflectionRequest) unmarshal(data []byte) error {
	r.wire = bytes.Clone(data) // connect reuses data
	return eachField(r.wire, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case requestHost:
			r.host = value
		case requestFileByName, requestFileOfSymbol, requestExtensionsOfMessage, requestServices:
			r.asks, r.name = number, string(value)
		case requestFileOfExtension:
			r.asks = number
			return eachField(value, func(number protowire.Number, value []byte, n uint64) error {
				switch number {
				case 1:
					r.name = string(value)
				case 2:
					r.extension = protowire.Number(n)
				}
				return nil
			})
		}
		return nil
	})
}

// eachField calls fn for the fields of a message that are bytes or varints.
func eachField(data []byte, fn func(number protowire.Number, value []byte, n uint64) error) error {
	for len(data) > 0 {
		number, typ, size := protowire.ConsumeTag(data)
		if size < 0 {
			return protowire.ParseError(size)
		}
		data = data[size:]
		var value []byte
		var n uint64
		switch typ {
		case protowire.BytesType:
			value, size = protowire.ConsumeBytes(data)
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(data)
		default:
			number, size = 0, protowire.ConsumeFieldValue(number, typ, data)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := fn(number, value, n); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}

func appendField(b []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), value)
}

// reflectionCodec is connect's codec for protobuf, for the two messages and for the
// errors that connect itself sends.
type reflectionCodec struct{}

// Name implements connect.Codec.
func (reflectionCodec) Name() string { return binary{}.Name() }

// Marshal implements connect.Codec.
func (reflectionCodec) Marshal(msg any) ([]byte, error) {
	if r, ok := msg.(*reflectionResponse); ok {
		return r.wire, nil
	}
	return binary{}.Marshal(msg)
}

// Unmarshal implements connect.Codec.
func (reflectionCodec) Unmarshal(data []byte, msg any) error {
	if r, ok := msg.(*reflectionRequest); ok {
		return r.unmarshal(data)
	}
	return binary{}.Unmarshal(data, msg)
}
