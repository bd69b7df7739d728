// Package pgparams names the types of parameters for a database that does not.
//
// A connection with prepared statements is told by the database which type each parameter
// has. One without them, as a pooler of transactions needs, guesses by the Go type. The
// driver can do that for hundreds of types, with code for each, and the program is built
// without that. This package names those that the program uses:
//
//	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
//		pgparams.Register(c)
//		return nil
//	}
package pgparams

import (
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
)

// names are the types of PostgreSQL for Go's, as the driver has them.
var names = []struct {
	value any
	name  string
}{
	{false, "bool"},
	{int16(0), "int2"}, {int32(0), "int4"}, {int64(0), "int8"}, {int(0), "int8"}, {uint32(0), "int8"}, {uint64(0), "numeric"},
	{float64(0), "float8"},
	{"", "text"}, {[]byte(nil), "bytea"},
	{time.Time{}, "timestamptz"},
}

// Register makes a connection know the types. Besides values these are slices of them, and
// pointers to them, which may be null.
func Register(c *pgx.Conn) {
	types := c.TypeMap()
	for _, n := range names {
		t := reflect.TypeOf(n.value)
		for _, t := range []reflect.Type{t, reflect.PointerTo(t)} {
			types.RegisterDefaultPgType(reflect.Zero(t).Interface(), n.name)
			types.RegisterDefaultPgType(reflect.Zero(reflect.SliceOf(t)).Interface(), "_"+n.name)
		}
	}
}
