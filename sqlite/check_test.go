package sqlite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/kv"
)

// meddle changes the database behind the driver's back.
func meddle(t *testing.T, db *DB, sql string, args ...any) {
	t.Helper()
	err := db.writer.do(&request{ctx: t.Context(), task: func(c *conn) error { return c.exec(sql, args...) }})
	if err != nil {
		t.Fatal(err)
	}
}

func kinds(report CheckReport) []DamageKind {
	var all []DamageKind
	for _, d := range report.Damage {
		all = append(all, d.Kind)
	}
	return all
}

func TestCheck(t *testing.T) {
	small, leaning := blob.New([]byte("small")), blob.New([]byte("leaning"))
	large := blob.New(bytes.Repeat([]byte("large"), 50_000))
	leaning.Base = small.ID
	object := func(t *testing.T, db *DB) string {
		paths, err := filepath.Glob(filepath.Join(db.dir, objectsName, "??", "*"))
		if err != nil || len(paths) != 1 {
			t.Fatal(paths, err)
		}
		return paths[0]
	}
	for _, test := range []struct {
		name   string
		damage func(*testing.T, *DB)
		want   []DamageKind
	}{
		{"sound", func(*testing.T, *DB) {}, nil},
		{"missing base", func(t *testing.T, db *DB) {
			meddle(t, db, `DELETE FROM blobs WHERE id = ?1`, small.ID[:])
		}, []DamageKind{MissingBase}},
		{"missing object", func(t *testing.T, db *DB) {
			if err := os.Remove(object(t, db)); err != nil {
				t.Fatal(err)
			}
		}, []DamageKind{MissingObject}},
		{"short object", func(t *testing.T, db *DB) {
			if err := os.Truncate(object(t, db), 10); err != nil {
				t.Fatal(err)
			}
		}, []DamageKind{WrongSize}},
		{"short row", func(t *testing.T, db *DB) {
			meddle(t, db, `UPDATE blobs SET data = x'00' WHERE id = ?1`, small.ID[:])
		}, []DamageKind{WrongSize}},
		{"missing generation", func(t *testing.T, db *DB) {
			meddle(t, db, `DELETE FROM meta WHERE key = 'generation'`)
		}, []DamageKind{MissingGeneration}},
		{"old orphan", func(t *testing.T, db *DB) {
			path := object(t, db)
			meddle(t, db, `DELETE FROM blobs WHERE id = ?1`, large.ID[:])
			old := time.Now().Add(-2 * orphanAge)
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}, []DamageKind{OrphanedObject}},
		{"young orphan", func(t *testing.T, db *DB) {
			meddle(t, db, `DELETE FROM blobs WHERE id = ?1`, large.ID[:])
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := openTest(t, nil)
			if err := db.Blobs().Put(t.Context(), small, leaning, large); err != nil {
				t.Fatal(err)
			}
			if err := db.Blobs().Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			test.damage(t, db)
			var done, total int64
			report, err := db.Check(t.Context(), CheckOptions{Progress: func(d, t int64) { done, total = d, t }})
			if err != nil {
				t.Fatal(err)
			}
			if got := kinds(report); !slices.Equal(got, test.want) {
				t.Errorf("damage %v, want %v", report.Damage, test.want)
			}
			if done != total || done != report.Blobs {
				t.Errorf("progress ended at %d of %d, the report has %d blobs", done, total, report.Blobs)
			}
		})
	}
}

func TestCheckFindsBrokenPages(t *testing.T) {
	dir, _, _ := filled(t)
	path := filepath.Join(dir, databaseName)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The last page is that of rows, or the index of one: not the schema.
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), info.Size()-4096); err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	report, err := db.Check(t.Context(), CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(kinds(report), DamagedDatabase) {
		t.Errorf("damage %v, want one of the database", report.Damage)
	}
}

func TestCheckStops(t *testing.T) {
	db := openTest(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Check(ctx, CheckOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Check with a dead context = %v", err)
	}
	if _, err := db.Stats(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Stats with a dead context = %v", err)
	}
}

func TestStats(t *testing.T) {
	db := openTest(t, nil)
	small, leaning := blob.New([]byte("small")), blob.New([]byte("leaning"))
	large := blob.New(make([]byte, 200_000))
	leaning.Base = small.ID
	if err := db.Blobs().Put(t.Context(), small, leaning, large); err != nil {
		t.Fatal(err)
	}
	err := db.Rows().Commit(t.Context(), &kv.Batch{Set: []kv.Set{
		{Key: "a:1", Value: []byte("xy")}, {Key: "a:2"}, {Key: "b:1", Value: []byte("z")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.Stats(t.Context(), func(key string) string { return key[:2] })
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []struct {
		name      string
		got, want Count
	}{
		{"blobs", got.Blobs, Count{3, 200_012}},
		{"in rows", got.InRows, Count{2, 12}},
		{"in files", got.InFiles, Count{1, 200_000}},
		{"deltas", got.Deltas, Count{1, 7}},
		{"rows a:", got.Rows["a:"], Count{2, 8}},
		{"rows b:", got.Rows["b:"], Count{1, 4}},
	} {
		if count.got != count.want {
			t.Errorf("%s: %+v, want %+v", count.name, count.got, count.want)
		}
	}
	if got.DatabaseBytes == 0 || got.LogBytes == 0 || got.PageSize != 4096 || got.Pages == 0 {
		t.Errorf("stats %+v", got)
	}
	all, err := db.Stats(t.Context(), nil)
	if err != nil || all.Rows[""] != (Count{3, 12}) {
		t.Errorf("all rows: %+v, %v", all.Rows, err)
	}
}
