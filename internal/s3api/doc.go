// Package s3api sends the requests of S3 that a bucket of blobs needs.
//
//	client, err := s3api.New(s3api.Config{Bucket: "my-bucket", Region: "eu-central-1", Credentials: keys})
//	object, err := client.Get(ctx, "packs/1", "bytes=0-99")
//
// It knows how requests are addressed and signed (version 4), which failures pass so that
// a request is worth another attempt, and how answers and errors are read. What the answers
// mean for a store is left to package blob/s3blob, where settings and credentials come from
// to package internal/awsconfig.
//
// An error is either an *Error, which has what the service answered, or says why there was
// no answer. No error has a secret or the address of a request.
package s3api
