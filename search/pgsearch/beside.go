package pgsearch

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
)

// Prepare creates the tables, or upgrades them, over a pool of the caller.
func Prepare(ctx context.Context, pool *pgxpool.Pool, opts *Options) error {
	db := &DB{pool: pool}
	if err := db.configure(opts); err != nil {
		return err
	}
	return db.migrate(ctx)
}

// Statement is a part of a transaction.
type Statement struct {
	SQL  string
	Args []any
}

// Beside returns the statements with which a transaction that changes a tenant's rows also
// changes the index, so that nothing in it outlasts a conversation: a deleted conversation
// leaves the index, and so does an archived one, unless archived ones are kept. The
// statements have an effect only if the condition holds, which uses the first two
// arguments; their own follow.
func Beside(tenant string, batches []*kv.Batch, condition string, opts *Options) []Statement {
	var gone, packed [][]byte
	for _, b := range batches {
		left, archived := leaving(b)
		gone, packed = append(gone, left...), append(packed, archived...)
	}
	if len(gone)+len(packed) == 0 {
		return nil
	}
	db := &DB{}
	if db.configure(opts) != nil {
		return nil
	}
	var out []Statement
	add := func(convs [][]byte, also string) {
		if len(convs) == 0 {
			return
		}
		// The row of the tenant first: an update of the index that has read the conversation
		// either comes before, or finds that it changed.
		for _, sql := range []string{
			`UPDATE @tenant SET dropped = dropped + cardinality($4::bytea[]) WHERE tenant = $3`,
			`DELETE FROM @run WHERE tenant = $3 AND conv = ANY($4::bytea[])`,
			`DELETE FROM @conv WHERE tenant = $3 AND conv = ANY($4::bytea[])`,
		} {
			out = append(out, Statement{db.sql(sql+also) + " AND " + condition, []any{tenant, convs}})
		}
	}
	add(gone, "")
	add(packed, ` AND EXISTS (SELECT 1 FROM @tenant kept WHERE kept.tenant = $3 AND kept.mode <> 'archived')`)
	return out
}

// leaving returns the keys of the conversations that a batch deletes, and of those that it
// archives.
func leaving(b *kv.Batch) (gone, packed [][]byte) {
	set := make(map[string]bool, len(b.Set))
	for _, s := range b.Set {
		set[s.Key] = true
	}
	for _, k := range b.Delete {
		switch {
		case set[k]:
		case keyspace.Conversations().Contains(k):
			gone = append(gone, key(keyspace.Last(k)))
		case keyspace.Heads().Contains(k) && set[keyspace.Pack(keyspace.Last(k))]:
			packed = append(packed, key(keyspace.Last(k)))
		}
	}
	return gone, packed
}

// Waiting returns the tenants whose index is not up to date. rows and tenants are the
// tables of package postgres.
func (db *DB) Waiting(ctx context.Context, tenants, rows string) ([]string, error) {
	in := keyspace.AllChanged()
	found, err := db.pool.Query(ctx, strings.NewReplacer("%tenants", tenants, "%rows", rows).Replace(db.sql(`SELECT t.tenant FROM %tenants t LEFT JOIN @tenant s ON s.tenant = t.tenant
		WHERE s.tenant IS NULL OR NOT s.complete
		OR EXISTS (SELECT 1 FROM %rows r WHERE r.tenant = t.tenant AND r.key >= $1 AND r.key < $2) ORDER BY t.tenant`)), []byte(in.Start), []byte(in.End))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowTo[string])
}
