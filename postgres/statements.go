package postgres

// The statements of a transaction. It begins by inserting its name. Each condition is a
// statement that removes the name if it does not hold, and each change happens only if
// the name is still there: a failed condition makes the rest do nothing and raises no
// error, which would fill the log of the server. The name is inserted without a condition,
// so that an attempt whose name another session has taken fails as a whole; see happened.
const (
	sqlCommit = `INSERT INTO @commits (minute, id) VALUES ($1, $2)`
	// sqlTake prevents a transaction by inserting its name, and leaves a mark beside it. It
	// does nothing if names of that minute, $3 minutes ago or earlier, may have been removed;
	// the database computes how much time has passed, since this node may have been frozen.
	sqlTake = `INSERT INTO @commits (minute, id) SELECT $1::bigint, n.id FROM unnest($2::bytea[]) AS n (id)
		WHERE $1::bigint > extract(epoch FROM clock_timestamp()) / 60 - $3::bigint`
	// sqlCommitted returns whether all conditions held.
	sqlCommitted = `SELECT count(*) FROM @commits WHERE minute = $1 AND id = $2`

	unless = `DELETE FROM @commits WHERE minute = $1 AND id = $2 AND NOT `
	// sqlNever is a condition that does not hold.
	sqlNever = `DELETE FROM @commits WHERE minute = $1 AND id = $2`

	// It locks the newest generation, which must be the one that this node knows. A
	// collector opens the next one and then waits for transactions that hold older
	// ones. New transactions use the new one and never block the collector.
	sqlInGeneration = unless + `((SELECT count(*) FROM (
		SELECT generation FROM @generations WHERE tenant = $3 ORDER BY generation DESC LIMIT 1 FOR SHARE) held WHERE generation = $4) = 1)`

	sqlHold = `SELECT generation FROM @generations WHERE tenant = $1 ORDER BY generation DESC LIMIT 1 FOR SHARE`

	sqlTouch = `UPDATE @blobs SET generation = $3 WHERE tenant = $1 AND id = ANY(ARRAY(
		SELECT id FROM @blobs WHERE tenant = $1 AND id = ANY($2) AND generation < $3 ORDER BY id FOR UPDATE))`
	sqlAllThere = unless + `((SELECT count(*) FROM @blobs WHERE tenant = $3 AND id = ANY($4)) = $5)`

	orTouch      = ` ON CONFLICT (tenant, id) DO UPDATE SET generation = excluded.generation WHERE b.generation < excluded.generation`
	sqlStoreBlob = `INSERT INTO @blobs AS b (tenant, generation, stored_at, id, base, size, object, data)
		SELECT $3::text, $4::bigint, $5::bigint, $6::bytea, $7::bytea, $8::bigint, $9::text, $10::bytea WHERE ` + named + orTouch
	sqlStoreBlobs = `INSERT INTO @blobs AS b (tenant, generation, stored_at, id, base, size, object, data)
		SELECT $3::text, $4::bigint, $5::bigint, n.id, n.base, n.size, n.object, n.data
		FROM unnest($6::bytea[], $7::bytea[], $8::bigint[], $9::text[], $10::bytea[]) AS n (id, base, size, object, data) WHERE ` + named + orTouch
	named = `EXISTS (SELECT 1 FROM @commits WHERE minute = $1 AND id = $2)`

	// The objects of new blobs that a row names.
	sqlUsed = `SELECT object FROM @blobs WHERE tenant = $1 AND id = ANY($2) AND object = ANY($3)`

	// Batches with ranges run one after the other, because missing rows cannot be
	// locked.
	sqlHoldTenant = `SELECT 1 FROM @tenants WHERE tenant = $1 FOR UPDATE`
	sqlTenantHeld = unless + `((SELECT count(*) FROM (SELECT tenant FROM @tenants WHERE tenant = $3 FOR UPDATE) held) = 1)`

	sqlExpect = unless + `((SELECT count(*) FILTER (WHERE want <> 0) FROM (
		SELECT ` + wanted + ` AS want FROM @rows WHERE tenant = $3 AND key = ANY($4::bytea[])
		AND ` + wanted + ` IN (0, version) ORDER BY key FOR UPDATE) held) = $6)`
	wanted = `($5::bigint[])[array_position($4::bytea[], key)]`
	// Rows that must be absent. One that another transaction creates meanwhile fails the
	// insertion.
	sqlAbsent = unless + `((SELECT count(*) FROM @rows WHERE tenant = $3 AND key = ANY($4)) = 0)`

	insertOne  = `INSERT INTO @rows (tenant, key, version, value) SELECT $3::text, $4::bytea, $5::bigint, $6::bytea WHERE ` + named
	insertMany = `INSERT INTO @rows (tenant, key, version, value)
		SELECT $3::text, n.key, n.version, n.value FROM unnest($4::bytea[], $5::bigint[], $6::bytea[]) AS n (key, version, value) WHERE ` + named
	orUpdate = ` ON CONFLICT (tenant, key) DO UPDATE SET version = excluded.version, value = excluded.value`
	// A missing row that is to be deleted is created first, so that no other
	// transaction can create it before this one ends.
	orNothing = ` ON CONFLICT (tenant, key) DO NOTHING`

	sqlRemove = `DELETE FROM @rows WHERE tenant = $3 AND key = ANY($4) AND ` + named
	// sqlRemoveOnce is for a transaction that inserts its name only if its conditions hold:
	// an existing name may be that of a lookup, which came before a late transaction.
	sqlRemoveOnce    = sqlRemove + unmarked
	sqlRemoveOneOnce = `DELETE FROM @rows WHERE tenant = $3 AND key = $4 AND ` + named + unmarked
	unmarked         = ` AND NOT EXISTS (SELECT 1 FROM @commits WHERE minute = $1 AND id = $5)`

	within         = `tenant = $3 AND key >= $4 AND key <> ALL($5) AND ` + named
	sqlRemoveFrom  = `DELETE FROM @rows WHERE ` + within
	sqlRemoveRange = sqlRemoveFrom + ` AND key < $6`
	// Rows that others committed while the deletion waited must be deleted too. It is too
	// late to do nothing then: these divide by zero, which fails the transaction.
	sqlEmptyFrom  = `SELECT 1/(count(*) = 0)::int FROM (SELECT key FROM @rows WHERE ` + within + ` LIMIT 1) left_over`
	sqlEmptyRange = `SELECT 1/(count(*) = 0)::int FROM (SELECT key FROM @rows WHERE ` + within + ` AND key < $6 LIMIT 1) left_over`

	// A row that was touched while the sweep waited for it is checked again.
	sqlSweep = `DELETE FROM @blobs AS b WHERE b.tenant = $1 AND b.id = ANY(ARRAY(
		SELECT id FROM @blobs WHERE tenant = $1 AND id = ANY($2) AND generation < $3 ORDER BY id FOR UPDATE)) AND b.generation < $3
		AND NOT EXISTS (SELECT 1 FROM @blobs AS leaning WHERE leaning.tenant = $1 AND leaning.base = b.id)
		RETURNING b.id, coalesce(b.object, '')`
)

// sqlWriteRows are the statements for a row, or for several, of each kind.
var sqlWriteRows = map[rowKind]struct{ one, many string }{
	upsertRow: {insertOne + orUpdate, insertMany + orUpdate},
	insertRow: {insertOne, insertMany},
	fenceRow:  {insertOne + orNothing, insertMany + orNothing},
}
