// Package unary calls and serves procedures with one request and one response, as
// Connect does, with one instance of Connect's generic code for all types of messages.
//
// Connect's own constructors are compiled again for every pair of types, which is 47 kB
// of the program for each procedure. The generated code below gen/ calls these instead. A
// message travels in a box that codecs encode and decode as the message itself, so that
// nothing differs on the wire.
//
//	get := unary.NewClient[*stetv1.GetRowRequest, *stetv1.GetRowResponse](httpClient, url)
//	res, err := get.Call(ctx, req)
//
// An interceptor finds the box in a request or a response. [Message] takes the message
// out of it.
package unary

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

// box holds a message of any type. The reflection of a box is that of its message.
type box struct{ proto.Message }

// Reset implements the method by which protobuf clears what it decodes into. Without
// it, the fields would be cleared one by one.
func (b *box) Reset() { proto.Reset(b.Message) }

// Message returns the message in what an interceptor got from Any, which is the message
// of a stream or the box of one. Other values are returned as they are.
func Message(v any) any {
	if b, ok := v.(*box); ok {
		return b.Message
	}
	return v
}

// fill returns an initializer that puts an empty message of a type into each box.
func fill(sample proto.Message) func(connect.Spec, any) error {
	kind := sample.ProtoReflect().Type()
	return func(_ connect.Spec, b any) error {
		b.(*box).Message = kind.New().Interface()
		return nil
	}
}

// What is generic below is short, and compiled once: all pointers have the same shape.
// The constraint must stay an interface of methods only for that.

// NewHandler returns the handler of a procedure. It replaces an initializer among the
// options.
func NewHandler[Req, Res proto.Message](procedure string, do func(context.Context, Req) (Res, error), options ...connect.HandlerOption) *connect.Handler {
	var sample Req
	return newHandler(procedure, sample, func(ctx context.Context, req proto.Message) (proto.Message, error) {
		return do(ctx, req.(Req))
	}, options)
}

func newHandler(procedure string, sample proto.Message, do func(context.Context, proto.Message) (proto.Message, error), options []connect.HandlerOption) *connect.Handler {
	return connect.NewUnaryHandler(procedure, func(ctx context.Context, req *connect.Request[box]) (*connect.Response[box], error) {
		res, err := do(ctx, req.Msg.Message)
		if err != nil {
			return nil, err
		}
		if !res.ProtoReflect().IsValid() {
			return nil, nil // Connect panics, and names the procedure
		}
		return connect.NewResponse(&box{res}), nil
	}, append(options[:len(options):len(options)], connect.WithRequestInitializer(fill(sample)))...)
}

// Client calls one procedure. Goroutines may share it.
type Client[Req, Res proto.Message] struct{ boxed *connect.Client[box, box] }

// NewClient returns the client of a procedure. It replaces an initializer among the
// options.
func NewClient[Req, Res proto.Message](httpClient connect.HTTPClient, url string, options ...connect.ClientOption) *Client[Req, Res] {
	var sample Res
	return &Client[Req, Res]{newClient(httpClient, url, sample, options)}
}

func newClient(httpClient connect.HTTPClient, url string, sample proto.Message, options []connect.ClientOption) *connect.Client[box, box] {
	options = append(options[:len(options):len(options)], connect.WithResponseInitializer(fill(sample)))
	return connect.NewClient[box, box](httpClient, url, options...)
}

// Call sends a request and returns the response.
func (c *Client[Req, Res]) Call(ctx context.Context, req Req) (Res, error) {
	res, err := call(ctx, c.boxed, req)
	if err != nil {
		var none Res
		return none, err
	}
	return res.(Res), nil
}

func call(ctx context.Context, boxed *connect.Client[box, box], req proto.Message) (proto.Message, error) {
	res, err := boxed.CallUnary(ctx, connect.NewRequest(&box{req}))
	if err != nil {
		return nil, err
	}
	return res.Msg.Message, nil
}
