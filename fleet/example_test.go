package fleet_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/postgres"
)

func ExampleOpen() {
	_, err := fleet.Open(context.Background(), fleet.Config{Database: "/var/lib/stet"})
	fmt.Println(errors.Is(err, postgres.ErrInvalidDSN))
	// Output: true
}

func ExampleIsAddress() {
	fmt.Println(fleet.IsAddress("postgres://stet@db1,db2/stet"), fleet.IsAddress("/var/lib/stet"))
	// Output: true false
}
