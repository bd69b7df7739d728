package agentrun

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Executor performs the server's requests on the client's machine.
type Executor interface {
	// Execute performs a request and passes its results to reply, in order: one, or
	// several for streaming work. The caller fills in the ids of the results. Return
	// an error for a failure that no result expresses; the server gets its text. The
	// context ends when the run is over or the server stops the work; a lost
	// connection does not end it. Execute is called for several requests at once.
	Execute(ctx context.Context, req *agentv1.ExecServerMessage, reply func(*agentv1.ExecClientMessage)) error
}

// Repeater is implemented by executors that can identify requests without side
// effects, such as reads. Only those are executed again if a crash of the client left
// their outcome unknown.
type Repeater interface {
	Repeatable(req *agentv1.ExecServerMessage) bool
}

// ExecutorFunc is a function that is an Executor.
type ExecutorFunc func(ctx context.Context, req *agentv1.ExecServerMessage, reply func(*agentv1.ExecClientMessage)) error

// Execute calls the function.
func (f ExecutorFunc) Execute(ctx context.Context, req *agentv1.ExecServerMessage, reply func(*agentv1.ExecClientMessage)) error {
	return f(ctx, req, reply)
}

// arm returns the message inside a request and its field, or nil for a request
// unknown to this release.
func arm(req *agentv1.ExecServerMessage) (protoreflect.Message, protoreflect.FieldDescriptor) {
	m := req.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("message"))
	if field == nil {
		return nil, nil
	}
	return m.Get(field).Message(), field
}

// textField returns a text field of a request's message, or "".
func textField(req *agentv1.ExecServerMessage, name protoreflect.Name) string {
	m, _ := arm(req)
	if m == nil {
		return ""
	}
	field := m.Descriptor().Fields().ByName(name)
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
		return ""
	}
	return m.Get(field).String()
}

// callKey identifies a call, so that it is recognized when it is requested again: by
// its exec id, or else its tool call id, and by its content. The number of the
// request is not included, because every stream starts counting again. A request
// without any id has no key.
func callKey(req *agentv1.ExecServerMessage) (string, error) {
	if req.GetExecId() == "" && textField(req, "tool_call_id") == "" {
		return "", nil
	}
	named := proto.CloneOf(req)
	named.Id, named.SpanContext = 0, nil
	data, err := encode(named)
	if err != nil {
		return "", err
	}
	return blob.Sum(data).String(), nil
}

// touchedPaths returns the paths that a request writes.
func touchedPaths(req *agentv1.ExecServerMessage) []string {
	switch req.GetMessage().(type) {
	case *agentv1.ExecServerMessage_WriteArgs, *agentv1.ExecServerMessage_DeleteArgs:
		return []string{textField(req, "path")}
	}
	return nil
}
