// Package postgres keeps rows and blobs of many tenants in a Postgres database,
// or in any other that speaks its protocol, for several stateless nodes at once.
//
//	db, err := postgres.Open(ctx, "postgres://stet@db1,db2/stet?target_session_attrs=read-write", nil)
//	defer db.Close()
//	tenant, err := db.Tenant("acme")
//	store := blob.Checked(tenant.Blobs())
//	err = store.Put(ctx, b)
//	err = tenant.Rows().Commit(ctx, &kv.Batch{Set: …, Refs: []blob.ID{b.ID}})
//
// A commit is one round trip: everything that it writes, and the conditions that
// must hold, go out together as one transaction, which the database undoes as a
// whole where a condition fails. Commits of one node that wait at the same time
// share a transaction; one that fails does not take the others with it. Where the
// connection breaks before the answer is there, the commit is looked up by a
// random name that it has written, and done again only if that cannot be found
// and can never come to be.
//
// Small blobs wait in memory for the commit that refers to them, and are rows of
// the database; from Options.LargeBytes on they are objects of a bucket, written
// before the row that names them. A collector on one node cannot remove what a
// commit on another refers to: see docs/format/postgres.md.
//
// Watchers are woken at once by commits of their own node, by NOTIFY soon after
// those of others, and every Options.PollInterval in any case.
//
// The package does not verify that content fits its id (blob.Checked does), nor
// does it seal rows (kv/sealed does). It never logs; errors hold no passwords.
package postgres
