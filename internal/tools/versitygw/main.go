// Command versitygw serves a directory as an S3 bucket store, for tests: the
// gateway of github.com/versity/versitygw over its POSIX backend. The program of
// that project links every cloud's clients and its own test suite; this one takes
// half as long to build.
//
//	versitygw ADDRESS REGION METADATA DATA
//
// The keys are in ROOT_ACCESS_KEY and ROOT_SECRET_KEY, as there.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: versitygw ADDRESS REGION METADATA DATA")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "versitygw:", err)
		os.Exit(1)
	}
}

// serve runs the gateway with the defaults of its own command line. Metadata goes
// into files: not every file system has extended attributes.
func serve(address, region, metadata, data string) error {
	sidecar, err := meta.NewSideCar(metadata)
	if err != nil {
		return err
	}
	opts := posix.PosixOpts{SideCarDir: metadata, Concurrency: 5000, CopyObjectThreshold: 5 << 30}
	opts.SetNewDirPerm(0o755)
	opts.SetNewFilePerm(0o644)
	backend, err := posix.New(data, sidecar, opts)
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), backend, &embedgw.Config{
		RootUserAccess: os.Getenv("ROOT_ACCESS_KEY"), RootUserSecret: os.Getenv("ROOT_SECRET_KEY"),
		Region: region, Ports: []string{address}, KeepAlive: true, Quiet: true,
		MaxConnections: 250_000, MaxRequests: 100_000, MultipartMaxParts: 10_000,
	})
}
