package pgsearch_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/search/pgsearch"
)

func ExampleOpen() {
	_, err := pgsearch.Open(context.Background(), "postgres://host:not-a-port/", nil)
	fmt.Println(errors.Is(err, pgsearch.ErrInvalidDSN))
	// Output: true
}
