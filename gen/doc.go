// Package gen holds the Go code that internal/tools/generate.sh writes from
// proto/, and the tests that hold the definitions to the wire format.
//
// The packages below it promise that a message read from the reference and
// written again loses nothing: what a definition leaves out stays in the
// message as an unknown field. They promise nothing about the bytes of an
// encoding, since maps have no order: whoever hashes an encoding makes it with
// proto.MarshalOptions{Deterministic: true} and keeps the bytes that were
// hashed.
//
// Clients and handlers take plain messages; headers are in the context, see
// connect.NewClientContext and connect.CallInfoForHandlerContext. In a call
// without streams, an interceptor finds the message in a box, which is a
// proto.Message with the reflection of its content:
//
//	msg := req.Any().(proto.Message).ProtoReflect().Interface()
//
// It may change that message. It cannot pass another request to a handler, nor
// return another response to a client.
package gen
