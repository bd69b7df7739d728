package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/foreign/cursor"
	"github.com/stet-dev/stet/sqlite"
)

type foreignDuJSON struct {
	Schema   string         `json:"schema"`
	Kind     string         `json:"kind"`
	Rows     int64          `json:"rows"`
	Bytes    int64          `json:"bytes"`
	Families []cursorFamily `json:"families"`
}

type cursorFamily struct {
	Family     string `json:"family"`
	Rows       int64  `json:"rows"`
	Bytes      int64  `json:"bytes"`
	Tombstones int64  `json:"tombstones"`
}

// duForeign measures the store of another program by families of keys. It returns false
// for a stet store.
func (a *app) duForeign(ctx context.Context) (done bool, err error) {
	return a.withForeign(ctx, func(src *cursor.Store) error { return a.measureForeign(ctx, src) })
}

func (a *app) measureForeign(ctx context.Context, src *cursor.Store) error {
	families, err := src.Measure(ctx)
	if err != nil {
		return err
	}
	var text strings.Builder
	line := func(name string, rows, bytes int64) {
		fmt.Fprintf(&text, "%s  %s  %s\n", padLeft(byteSize(bytes), 10), padLeft(plural(rows, "row"), 14), printable(name))
	}
	total := cursor.Total(families)
	value := foreignDuJSON{Schema: "stet.du.foreign.v1", Kind: src.Kind().String(), Rows: total.Rows, Bytes: total.Bytes, Families: []cursorFamily{}}
	for _, u := range families {
		value.Families = append(value.Families, cursorFamily(u))
		line(u.Family, u.Rows, u.Bytes)
	}
	line("all", total.Rows, total.Bytes)
	return a.print(value, text.String())
}

// foreignStore reports whether a path is a store of another program.
func foreignStore(path string) bool { return !sqlite.Exists(path) && cursor.IsStore(path) }
