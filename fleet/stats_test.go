package fleet_test

import (
	"testing"

	"github.com/stet-dev/stet/fleet"
	"github.com/stet-dev/stet/internal/realservers"
)

// TestStatsOfATenant counts what a tenant has, and nothing of others.
func TestStatsOfATenant(t *testing.T) {
	s3 := realservers.S3(t)
	useKeys(t, s3)
	config := fleet.Config{
		Database: realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t), Blobs: s3.URL(s3.NewBucket(t)),
	}
	config.Postgres.LargeBytes = 64 // some of what follows is larger
	f := node(t, config)
	db, other := open(t, f, "shop"), open(t, f, "other")
	for _, id := range []string{"a", "b"} {
		if _, err := talk(t.Context(), db, id, 3); err != nil {
			t.Fatal(err)
		}
	}
	stats, err := db.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := stats.Rows["stet:save"]; got.N != 6 || got.Bytes == 0 || stats.Rows["stet:conversation"].N != 2 {
		t.Errorf("rows: %+v", stats.Rows)
	}
	if stats.InFiles.N == 0 || stats.Blobs.N != stats.InRows.N+stats.InFiles.N || stats.DatabaseBytes <= stats.InRows.Bytes {
		t.Errorf("blobs: %+v", stats)
	}
	if stats, err := other.Stats(t.Context()); err != nil || stats.Blobs.N != 0 || stats.Rows["stet:save"].N != 0 {
		t.Errorf("another tenant has %+v, %v", stats, err)
	}
}
