// Package s3blob implements blob.Objects on a bucket of any S3-compatible service:
// large objects under keys that are used once.
//
//	bucket, err := s3blob.Open(ctx, "s3://my-bucket/stet?region=eu-central-1", nil)
//	err = bucket.Check(ctx) // readiness, with an explanation
//	err = bucket.PutObject(ctx, "packs/1", file, size)
//	r, err := bucket.OpenObject(ctx, "packs/1", 4096, 1000)
//
// An object holds exactly the bytes that were put, so any other tool can read it. The
// promises:
//
//   - PutObject returns nil only after the bucket confirmed all bytes; every request
//     carries checksums of its body, and the size of a large object is checked before
//     it counts as stored. Large objects are sent in parts of a few MiB, so memory
//     does not grow with them. A failed upload is aborted; AbortStale finds uploads
//     that a crash left.
//   - If a connection breaks during a read, a new one continues at the same byte, a
//     few times; then Read fails. It never ends early.
//   - A whole object is compared with its CRC-32C while it is read: the one in its
//     metadata if it was sent in one piece, or the bucket's own if it was sent in
//     parts and the bucket keeps one. A part of an object must be checked by the
//     caller.
//   - Transient failures (server errors, throttling, timeouts, connections) are
//     retried a limited number of times; other failures are returned at once.
//
// Nothing depends on conditional writes, on the order of two writes of one key, or on a
// listing that has just changed. The caller decides which objects are needed: a crash may
// leave objects that nothing names, never the reverse.
//
// Credentials come from the usual places of AWS tools (environment, shared files,
// roles) or from Options, never from the address. Profiles that sign in are asked for
// theirs by the program aws. Directory buckets (S3 Express) are not supported.
package s3blob
