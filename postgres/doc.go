// Package postgres keeps rows and blobs of many tenants in a Postgres database, or
// another with the same protocol, for several stateless nodes at once.
//
//	db, err := postgres.Open(ctx, "postgres://stet@db1,db2/stet?target_session_attrs=read-write", nil)
//	defer db.Close()
//	tenant, err := db.Tenant("acme")
//	store := blob.Checked(tenant.Blobs())
//	err = store.Put(ctx, b)
//	err = tenant.Rows().Commit(ctx, &kv.Batch{Set: …, Refs: []blob.ID{b.ID}})
//
// A commit is one round trip: everything that it writes, and the conditions that must
// hold, are sent together as one transaction, which the database rolls back if a
// condition fails. Concurrent commits of one node share a transaction; one that fails
// does not affect the others. If the connection breaks before the answer, the commit is
// looked up by a random name that it writes, and repeated only if that name is absent and
// can no longer appear. Reads that wait at the same time share a round trip, too: a
// caller that reads a lot should do so from several goroutines.
//
// Small blobs wait in memory for the commit that refers to them and become rows of
// the database. Blobs of Options.LargeBytes or more are objects of a bucket, written
// before the row that names them. A collector on one node cannot remove what a commit
// on another refers to: see docs/format/postgres.md.
//
// Commits of the same node wake watchers at once, commits of others soon after
// through NOTIFY. Watchers also wake every Options.PollInterval.
//
// The package does not verify that content matches its id (blob.Checked does), nor
// does it seal rows (kv/sealed does). It never logs; errors hold no passwords.
package postgres
