package s3blob_test

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/blob/s3blob"
)

func ExampleOpen() {
	// Without Credentials they come from the environment, shared files or a role.
	keys := s3blob.StaticKeys("access", "secret")
	bucket, err := s3blob.Open(context.Background(),
		"s3://my-bucket/stet?region=eu-central-1&endpoint=http://127.0.0.1:9000",
		&s3blob.Options{Credentials: keys})
	fmt.Println(bucket, err)
	// Output: s3://my-bucket/stet/ <nil>
}

func ExampleSnapshotKey() {
	fmt.Println(s3blob.SnapshotKey("bc-1", "2026/11 v1.0"))
	// Output: snapshots/bc-1/2026.2f11.20v1.2e0
}
