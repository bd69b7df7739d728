// Package gen holds the Go code that internal/tools/generate.sh writes from
// proto/, and the tests that hold the definitions to the wire format.
//
// The packages below it promise that a message read from the reference and
// written again loses nothing: what a definition leaves out stays in the
// message as an unknown field. They promise nothing about the bytes of an
// encoding, since maps have no order: whoever hashes an encoding makes it with
// proto.MarshalOptions{Deterministic: true} and keeps the bytes that were
// hashed.
package gen
