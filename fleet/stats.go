package fleet

import (
	"context"

	"github.com/stet-dev/stet/postgres"
	"github.com/stet-dev/stet/sqlite"
)

// statsOf counts what a tenant has in the database and in the bucket, in the terms of the
// embedded engine.
func statsOf(t *postgres.Tenant) func(context.Context, func(string) string) (sqlite.Stats, error) {
	return func(ctx context.Context, family func(string) string) (sqlite.Stats, error) {
		found, err := t.Stats(ctx)
		if err != nil {
			return sqlite.Stats{}, err
		}
		s := sqlite.Stats{
			InRows: sqlite.Count(found.Inside), InFiles: sqlite.Count(found.Objects), Deltas: sqlite.Count(found.Deltas),
			Rows: make(map[string]sqlite.Count),
		}
		s.Blobs = sqlite.Count{N: s.InRows.N + s.InFiles.N, Bytes: s.InRows.Bytes + s.InFiles.Bytes}
		s.DatabaseBytes = s.InRows.Bytes
		for _, rows := range found.Rows {
			name := ""
			if family != nil {
				name = family(rows.Key)
			}
			sum := s.Rows[name]
			s.Rows[name] = sqlite.Count{N: sum.N + rows.N, Bytes: sum.Bytes + rows.Bytes}
			s.DatabaseBytes += rows.Bytes
		}
		return s, nil
	}
}
