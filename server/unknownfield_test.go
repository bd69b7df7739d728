package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/server"
)

// written is a message as somebody typed it.
type written struct{ text []byte }

// typed is a codec that sends messages as they were typed.
type typed struct{}

func (typed) Name() string { return "json" }

func (typed) Marshal(msg any) ([]byte, error) { return msg.(*written).text, nil }

func (typed) MarshalStable(msg any) ([]byte, error) { return msg.(*written).text, nil }

func (typed) IsBinary() bool { return false }

func (typed) Unmarshal(data []byte, msg any) error {
	msg.(*written).text = append([]byte(nil), data...)
	return nil
}

// send calls a procedure with a text and returns the error of the answer.
func send(ctx context.Context, c *http.Client, url, text string, streams bool, opts ...connect.ClientOption) error {
	call := connect.NewClient[written, written](c, url, append([]connect.ClientOption{connect.WithCodec(typed{})}, opts...)...)
	msg := &written{[]byte(text)}
	if !streams {
		_, err := call.CallUnary(ctx, connect.NewRequest(msg))
		return err
	}
	stream := call.CallBidiStream(ctx)
	defer stream.CloseResponse()
	_ = stream.Send(msg) // the answer says what happened
	_ = stream.CloseRequest()
	_, err := stream.Receive()
	return err
}

// listener is an agent that reads one message.
type listener struct{}

func (listener) Run(_ context.Context, stream *connect.BidiStream[agentv1.AgentClientMessage, agentv1.AgentServerMessage]) error {
	_, err := stream.Receive()
	return err
}

// Every call in JSON fails if a field of its message is unknown, in every protocol.
func TestUnknownFieldsAreRefused(t *testing.T) {
	hc, base := dial(t, start(t, &server.Options{Token: token, Agent: listener{}}), token).HTTP()
	protocols := map[string][]connect.ClientOption{
		"Connect": nil, "GET": {connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)},
		"gRPC": {connect.WithGRPC()}, "gRPC-Web": {connect.WithGRPCWeb()},
	}
	for _, procedure := range server.Procedures() {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(procedure[1:], "/", ".")))
		if err != nil {
			t.Fatal(err)
		}
		method := d.(protoreflect.MethodDescriptor)
		for name, opts := range protocols {
			if name == "GET" && !strings.HasSuffix(procedure, "/Has") && !strings.HasSuffix(procedure, "/List") {
				continue
			}
			err := send(t.Context(), hc, base+procedure, `{"noSuchField": 1}`, method.IsStreamingClient() || method.IsStreamingServer(), opts...)
			var wire *connect.Error
			if !errors.As(err, &wire) || wire.Code() != connect.CodeInvalidArgument ||
				wire.Meta().Get("Stet-Error") != "unknown-field" || wire.Meta().Get("Stet-Error-Class") != "invalid" {
				t.Errorf("%s, %s: %v", procedure, name, err)
			} else if want := "unknown field: " + string(method.Input().FullName()) + ` has no field "noSuchField"`; !strings.HasPrefix(wire.Message(), want) {
				t.Errorf("%s, %s: %q, want %q", procedure, name, wire.Message(), want)
			}
		}
	}
}

func TestUnknownFieldsAreNamed(t *testing.T) {
	hc, base := dial(t, start(t, nil), token).HTTP()
	const list, put, commit = "ConversationService/List", "ThreadService/Put", "RowService/Commit"
	for _, test := range []struct{ call, text, reason, want string }{
		{list, `{"page": {"limt": 2}}`, "unknown-field", `stet.v1.Page has no field "limt"; did you mean "limit"?`},
		{list, `{"page": {"size": 2}}`, "unknown-field", `stet.v1.Page has no field "size"; it has cursor, limit`},
		{list, `{"page": null, "x": {"a": [1, {}]}}`, "unknown-field", `has no field "x"`},
		{list, `{"` + strings.Repeat("é", 60) + `": 1}`, "unknown-field", `has no field "` + strings.Repeat("é", 32) + `…"`},
		{put, `{"values": {"city": {"type": "json", "dta": ""}}}`, "unknown-field", `stet.v1.FrameValue has no field "dta"; did you mean "data"?`},
		{put, `{"key": {"thread": "t"}, "newversions": {}}`, "unknown-field", `stet.v1.PutFrameRequest has no field "newversions"`},
		{commit, `{"set": [{"key": "aw=="}, {"key": "aw==", "vlaue": "aw=="}]}`, "unknown-field", `did you mean "value"?`},
		{"/grpc.health.v1.Health/Check", `{"servic": "x"}`, "unknown-field", `did you mean "service"?`},
		{"StoreService/Info", `{"x": 1}`, "unknown-field", `stet.v1.StoreInfoRequest has no field "x"; it has none`},
		{list, `{"page": {"limit": "many"}}`, "malformed-message", "malformed message: stet.v1.ListConversationsRequest: "},
		{list, `{"page": [`, "malformed-message", "malformed message: "},
		{list, `{"page": 1}`, "malformed-message", "malformed message: "},
		{list, ``, "malformed-message", "malformed message: "},
		{"CheckpointService/Create", `{"side": "SIDE_SOMETIMES"}`, "malformed-message", "SIDE_SOMETIMES"},
	} {
		procedure := "/stet.v1." + test.call
		if strings.HasPrefix(test.call, "/") {
			procedure = test.call
		}
		err := send(t.Context(), hc, base+procedure, test.text, false)
		var wire *connect.Error
		if !errors.As(err, &wire) || wire.Code() != connect.CodeInvalidArgument || wire.Meta().Get("Stet-Error") != test.reason || !strings.Contains(wire.Message(), test.want) {
			t.Errorf("%s %.80s: got %v, want %s: %q", test.call, test.text, err, test.reason, test.want)
		}
	}
}

// A message that exceeds a limit is refused with the code and the reason of limits, in JSON
// and in binary. So are errors of searches with theirs.
func TestReasonsOfRefusedMessages(t *testing.T) {
	hc, base := dial(t, start(t, nil), token).HTTP()
	many := `{"ids": [` + strings.Repeat(`"",`, 100_001) + `""]}`
	deep := strings.Repeat(`{"page":`, 201) + "1" + strings.Repeat("}", 201)
	for _, test := range []struct {
		call, text string
		code       connect.Code
		reason     string
	}{
		{"BlobService/Has", many, connect.CodeResourceExhausted, "limit-exceeded"},
		{"ConversationService/List", deep, connect.CodeResourceExhausted, "limit-exceeded"},
		{"ConversationService/Search", `{"query": ""}`, connect.CodeInvalidArgument, "empty-query"},
		{"ConversationService/Search", `{"query": "x", "page": {"cursor": "?"}}`, connect.CodeInvalidArgument, "invalid-cursor"},
		{"CheckpointService/Create", `{"workspace": "/", "side": 77}`, connect.CodeInvalidArgument, "invalid-argument"},
	} {
		err := send(t.Context(), hc, base+"/stet.v1."+test.call, test.text, false)
		var wire *connect.Error
		if !errors.As(err, &wire) || wire.Code() != test.code || wire.Meta().Get("Stet-Error") != test.reason {
			t.Errorf("%s: got %v, want %v and reason %q", test.call, err, test.code, test.reason)
		}
	}
	ids := make([][]byte, 100_001)
	_, err := stetv1connect.NewBlobServiceClient(hc, base).Has(t.Context(), &stetv1.HasBlobsRequest{Ids: ids})
	var wire *connect.Error
	if !errors.As(err, &wire) || wire.Code() != connect.CodeResourceExhausted || wire.Meta().Get("Stet-Error") != "limit-exceeded" {
		t.Errorf("in binary: %v", err)
	}
}

// A later client sends what this server does not know yet, in binary.
func TestUnknownFieldsOfProtobufAreAccepted(t *testing.T) {
	hc, base := dial(t, start(t, nil), token).HTTP()
	req := &stetv1.ListConversationsRequest{Page: &stetv1.Page{Limit: 2}}
	for _, m := range []proto.Message{req, req.GetPage()} {
		for _, number := range []protowire.Number{1000, protowire.MaxValidNumber} {
			m.ProtoReflect().SetUnknown(append(m.ProtoReflect().GetUnknown(), protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), []byte("later"))...))
		}
	}
	for _, opts := range [][]connect.ClientOption{nil, {connect.WithGRPC()}, {connect.WithGRPCWeb()}} {
		if _, err := stetv1connect.NewConversationServiceClient(hc, base, opts...).List(t.Context(), req); err != nil {
			t.Error(err)
		}
	}
}
