package postgres

// The statements of a transaction. Statements that check a condition are named after
// it, and divide by zero if it does not hold.
const (
	sqlCommit = `INSERT INTO @commits (minute, id) VALUES ($1, $2)`

	// It locks the newest generation, which must be the one that this node knows. A
	// collector opens the next one and then waits for transactions that hold older
	// ones. New transactions use the new one and never block the collector.
	sqlCommitIn = `WITH named AS (` + sqlCommit + `) SELECT 1/(count(*) = 1)::int FROM (
		SELECT generation FROM @generations WHERE tenant = $3 ORDER BY generation DESC LIMIT 1 FOR SHARE) held WHERE generation = $4`

	sqlHold = `SELECT generation FROM @generations WHERE tenant = $1 ORDER BY generation DESC LIMIT 1 FOR SHARE`

	sqlTouch = `UPDATE @blobs SET generation = $3 WHERE tenant = $1 AND id = ANY(ARRAY(
		SELECT id FROM @blobs WHERE tenant = $1 AND id = ANY($2) AND generation < $3 ORDER BY id FOR UPDATE))`
	sqlAllThere = `SELECT 1/(count(*) = $3)::int FROM @blobs WHERE tenant = $1 AND id = ANY($2)`

	orTouch      = ` ON CONFLICT (tenant, id) DO UPDATE SET generation = excluded.generation WHERE b.generation < excluded.generation`
	sqlStoreBlob = `INSERT INTO @blobs AS b (tenant, generation, stored_at, id, base, size, object, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)` + orTouch
	sqlStoreBlobs = `INSERT INTO @blobs AS b (tenant, generation, stored_at, id, base, size, object, data)
		SELECT $1::text, $2::bigint, $3::bigint, n.id, n.base, n.size, n.object, n.data
		FROM unnest($4::bytea[], $5::bytea[], $6::bigint[], $7::text[], $8::bytea[]) AS n (id, base, size, object, data)` + orTouch

	// The objects of new blobs that a row names.
	sqlUsed = `SELECT object FROM @blobs WHERE tenant = $1 AND id = ANY($2) AND object = ANY($3)`

	// Batches with ranges run one after the other, because missing rows cannot be
	// locked.
	sqlHoldTenant = `SELECT 1/count(*) FROM (SELECT tenant FROM @tenants WHERE tenant = $1 FOR UPDATE) held`

	sqlExpect = `SELECT 1/(count(*) FILTER (WHERE want <> 0) = $4)::int FROM (
		SELECT ` + wanted + ` AS want FROM @rows WHERE tenant = $1 AND key = ANY($2::bytea[])
		AND ` + wanted + ` IN (0, version) ORDER BY key FOR UPDATE) held`
	wanted = `($3::bigint[])[array_position($2::bytea[], key)]`

	insertOne  = `INSERT INTO @rows (tenant, key, version, value) VALUES ($1, $2, $3, $4)`
	insertMany = `INSERT INTO @rows (tenant, key, version, value)
		SELECT $1::text, n.key, n.version, n.value FROM unnest($2::bytea[], $3::bigint[], $4::bytea[]) AS n (key, version, value)`
	orUpdate = ` ON CONFLICT (tenant, key) DO UPDATE SET version = excluded.version, value = excluded.value`
	// A missing row that is to be deleted is created first, so that no other
	// transaction can create it before this one ends.
	orNothing = ` ON CONFLICT (tenant, key) DO NOTHING`

	sqlRemove = `DELETE FROM @rows WHERE tenant = $1 AND key = ANY($2)`

	sqlRemoveFrom  = `DELETE FROM @rows WHERE tenant = $1 AND key >= $2 AND key <> ALL($3)`
	sqlRemoveRange = sqlRemoveFrom + ` AND key < $4`
	// Rows that others committed while the deletion waited must be deleted too.
	sqlEmptyFrom  = `SELECT 1/(count(*) = 0)::int FROM (SELECT key FROM @rows WHERE tenant = $1 AND key >= $2 AND key <> ALL($3) LIMIT 1) left_over`
	sqlEmptyRange = `SELECT 1/(count(*) = 0)::int FROM (SELECT key FROM @rows WHERE tenant = $1 AND key >= $2 AND key <> ALL($3) AND key < $4 LIMIT 1) left_over`

	// A row that was touched while the sweep waited for it is checked again.
	sqlSweep = `DELETE FROM @blobs AS b WHERE b.tenant = $1 AND b.id = ANY(ARRAY(
		SELECT id FROM @blobs WHERE tenant = $1 AND id = ANY($2) AND generation < $3 ORDER BY id FOR UPDATE)) AND b.generation < $3
		AND NOT EXISTS (SELECT 1 FROM @blobs AS leaning WHERE leaning.tenant = $1 AND leaning.base = b.id)
		RETURNING b.id, coalesce(b.object, '')`

	sqlFail = `SELECT 1/$1::int`
)

// sqlWriteRows are the statements for a row, or for several, of each kind.
var sqlWriteRows = map[rowKind]struct{ one, many string }{
	upsertRow: {insertOne + orUpdate, insertMany + orUpdate},
	insertRow: {insertOne, insertMany},
	fenceRow:  {insertOne + orNothing, insertMany + orNothing},
}
