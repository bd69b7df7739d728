// Package s3blob makes a bucket of any S3-compatible service a blob.Objects: large
// bytes under keys that are used once.
//
//	bucket, err := s3blob.Open(ctx, "s3://my-bucket/stet?region=eu-central-1", nil)
//	err = bucket.Check(ctx) // readiness, with an explanation
//	err = bucket.PutObject(ctx, "packs/1", file, size)
//	r, err := bucket.OpenObject(ctx, "packs/1", 4096, 1000)
//
// An object is exactly the bytes that were put, so that any other tool can read
// it. What is promised:
//
//   - PutObject returns nil only after the bucket confirmed all bytes; every
//     request carries checksums of its body, and a large object is asked for its
//     size before it counts as stored. Large objects travel in parts of a few
//     MiB, so that memory does not grow with them; an upload that fails is
//     abandoned, and AbortStale finds those that a crash left.
//   - A connection that breaks under a reader is replaced by another one from the
//     same byte on, a few times; then Read fails. It never ends early.
//   - A whole object is compared with its CRC-32C while it is read: the one in its
//     metadata where it came in one piece, the bucket's own where it came in parts
//     and the bucket keeps one. Part of an object can be checked by its reader
//     only, who knows a hash of it.
//   - What may pass (errors of the server, throttling, time-outs, connections) is
//     tried again, a bounded number of times; what does not pass is told at once.
//
// Nothing depends on conditional writes, on the order of two writes of one key, or
// on a listing that has just changed. Which objects are needed is left to the
// caller: a crash may leave objects that nothing names, never the reverse.
//
// Credentials come from the places that tools for AWS look at (environment,
// shared files, roles) or from Options, never from the address.
package s3blob
