// Command populate makes a store with many small conversations, to measure and profile
// what grows with their number.
//
//	go run ./internal/tools/populate -n 100000 DIR
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/internal/populate"
)

func main() {
	n := flag.Int("n", 100_000, "number of conversations")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "populate: name the directory of the store")
		os.Exit(2)
	}
	if err := run(context.Background(), flag.Arg(0), *n); err != nil {
		fmt.Fprintln(os.Stderr, "populate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, n int) error {
	db, err := stet.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	err = populate.Conversations(ctx, db.Conversations(), n)
	if err == nil {
		err = db.Compact(ctx, nil)
	}
	return errors.Join(err, db.Close())
}
