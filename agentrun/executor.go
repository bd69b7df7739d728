package agentrun

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stet-dev/stet/blob"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// Executor does on the client's machine what the server asks for.
type Executor interface {
	// Execute does what a request asks for and gives its results to reply, in
	// order: one, or several for work that streams. The ids of the results are
	// filled in by the caller. An error tells the server that the work failed in a
	// way that no result expresses, with its text. The context ends when the run
	// is over or the server wants the work to stop; a lost connection does not end
	// it. Execute is called for several requests at once.
	Execute(ctx context.Context, req *agentv1.ExecServerMessage, reply func(*agentv1.ExecClientMessage)) error
}

// Repeater is implemented by executors that know requests which change nothing,
// such as reads. Those, and only those, are executed again after a crash of the
// client left their outcome unknown.
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
// that this release does not know.
func arm(req *agentv1.ExecServerMessage) (protoreflect.Message, protoreflect.FieldDescriptor) {
	m := req.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("message"))
	if field == nil {
		return nil, nil
	}
	return m.Get(field).Message(), field
}

// textField returns a text field of a request's message, or nothing.
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

// callKey names a call, so that it is known again when it is asked for again: by
// its exec id, or else its tool call's, and by everything that it asks for. The
// number of the request is not a part of it, since every stream counts anew. A
// request without any id has no key.
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

// touchedPaths returns the paths that a request says it writes.
func touchedPaths(req *agentv1.ExecServerMessage) []string {
	switch req.GetMessage().(type) {
	case *agentv1.ExecServerMessage_WriteArgs, *agentv1.ExecServerMessage_DeleteArgs:
		return []string{textField(req, "path")}
	}
	return nil
}
