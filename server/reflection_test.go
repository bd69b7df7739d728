package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/stet-dev/stet/fault"
)

// reflected opens a stream to handlers of reflection.
func reflected(t *testing.T, handlers map[string]http.Handler) *grpcreflect.ClientStream {
	t.Helper()
	mux := http.NewServeMux()
	for path, handler := range handlers {
		mux.Handle(path, handler)
	}
	web := httptest.NewUnstartedServer(mux)
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(web.Close)
	stream := grpcreflect.NewClient(web.Client(), web.URL, connect.WithGRPC()).NewStream(context.WithoutCancel(t.Context()), grpcreflect.WithReflectionHost("a.example"))
	t.Cleanup(func() {
		if _, err := stream.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return stream
}

// reference answers as the usual library does.
func reference() map[string]http.Handler {
	path, handler := grpcreflect.NewHandlerV1(grpcreflect.NewStaticReflector(services...))
	return map[string]http.Handler{path: handler}
}

// sameFiles fails unless both sides give the same files, or both do not find them.
func sameFiles(t *testing.T, what string, ask func(*grpcreflect.ClientStream) ([]*descriptorpb.FileDescriptorProto, error), ours, theirs *grpcreflect.ClientStream) int {
	t.Helper()
	got, err := ask(ours)
	want, wantErr := ask(theirs)
	if connect.CodeOf(err) != connect.CodeOf(wantErr) || (err == nil) != (wantErr == nil) || grpcreflect.IsReflectionStreamBroken(err) {
		t.Fatalf("%s: %v, want %v", what, err, wantErr)
	}
	for _, file := range want {
		file.SourceCodeInfo = nil // comments, which are not sent
	}
	if !slices.EqualFunc(got, want, func(a, b *descriptorpb.FileDescriptorProto) bool { return proto.Equal(a, b) }) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
	return len(got)
}

func TestReflectionIsThatOfTheReference(t *testing.T) {
	ours, theirs := reflected(t, reflection(services)), reflected(t, reference())
	got, err := ours.ListServices()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := theirs.ListServices(); err != nil || !slices.Equal(got, want) || len(got) != len(services) {
		t.Errorf("services %v, want %v (%v)", got, want, err)
	}

	files := 0
	symbols := []protoreflect.FullName{"stet.v1", "stet.v1.Nothing", "", "a b", "grpc.health.v1.Health", "grpc.health.v1.HealthCheckResponse.ServingStatus",
		"grpc.health.v1.Nothing", "stet.v1.BlobService.Get", "stet.v1.BlobService"}
	for _, name := range services {
		symbols = append(symbols, protoreflect.FullName(name))
	}
	for _, name := range symbols {
		files += sameFiles(t, "symbol "+string(name), func(s *grpcreflect.ClientStream) ([]*descriptorpb.FileDescriptorProto, error) {
			return s.FileContainingSymbol(name)
		}, ours, theirs)
	}
	if files < 40 {
		t.Errorf("symbols led to %d files only", files)
	}

	names := []string{"grpc/health/v1/health.proto", "none.proto", ""}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		names = append(names, file.Path())
		return true
	})
	slices.Sort(names)
	for _, name := range names {
		sameFiles(t, "file "+name, func(s *grpcreflect.ClientStream) ([]*descriptorpb.FileDescriptorProto, error) {
			return s.FileByFilename(name)
		}, ours, theirs)
	}

	// The only extensions that are linked are those of protobuf itself.
	const extended = "google.protobuf.FeatureSet"
	for message, number := range map[protoreflect.FullName]protoreflect.FieldNumber{extended: 1002, "google.protobuf.FieldOptions": 5, "stet.v1.Nothing": 1} {
		sameFiles(t, "extension of "+string(message), func(s *grpcreflect.ClientStream) ([]*descriptorpb.FileDescriptorProto, error) {
			return s.FileContainingExtension(message, number)
		}, ours, theirs)
	}
	if numbers, err := ours.AllExtensionNumbers(extended); err != nil || !slices.Contains(numbers, 1002) {
		t.Errorf("extensions of %s: %v (%v)", extended, numbers, err)
	}
	if numbers, err := ours.AllExtensionNumbers("google.protobuf.Timestamp"); err != nil || len(numbers) != 0 {
		t.Errorf("extensions of a message without: %v (%v)", numbers, err)
	}
	if _, err := ours.AllExtensionNumbers("stet.v1.Nothing"); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("extensions of no message: %v", err)
	}
}

func TestReflectionOfTheOlderVersion(t *testing.T) {
	handlers := reflection(services)
	delete(handlers, "/grpc.reflection.v1.ServerReflection/")
	if got, err := reflected(t, handlers).ListServices(); err != nil || len(got) != len(services) {
		t.Errorf("services %v (%v)", got, err)
	}
}

// TestEveryServiceIsDescribed finds a file of ours that has neither a message nor an
// enum, of which nothing gives the descriptor.
func TestEveryServiceIsDescribed(t *testing.T) {
	for _, name := range services {
		if files, err := fileOfSymbol(protoreflect.FullName(name), make(map[string]bool)); err != nil || len(files) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(files), err)
		}
	}
}

func TestReflectionRequestsThatAreBroken(t *testing.T) {
	for name, wire := range map[string][]byte{
		"cut short":        {0x22, 5, 'a'},
		"no tag":           {0xff},
		"a broken group":   {0x23, 0xff},
		"broken extension": appendField(nil, requestFileOfExtension, []byte{0xff}),
	} {
		if err := new(reflectionRequest).unmarshal(wire); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	unknown := protowire.AppendFixed32(protowire.AppendTag(nil, 99, protowire.Fixed32Type), 7)
	r := new(reflectionRequest)
	if err := r.unmarshal(unknown); err != nil {
		t.Errorf("an unknown field: %v", err)
	}
	if _, _, err := r.answer(services, nil); err != errNoQuestion {
		t.Errorf("a request without a question: %v", err)
	}
	if reasons := fault.Reasons(errNoQuestion); len(reasons) == 0 {
		t.Error("a request without a question has no reason")
	}
}
