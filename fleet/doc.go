// Package fleet puts the stores of many tenants on one Postgres database and,
// optionally, one bucket, for any number of stateless nodes.
//
//	f, err := fleet.Open(ctx, fleet.Config{
//		Database: "postgres://stet@db1,db2/stet?target_session_attrs=read-write",
//		Blobs:    "s3://my-bucket/stet?region=eu-central-1",
//	})
//	defer f.Close()
//	db, err := f.Open(ctx, "shop") // a *stet.DB like any other
//	srv, err := server.NewTenants(f, f.Tokens().Verify, &server.Options{Ready: f.Ready, Shared: true})
//
// A node holds no state that another one needs: rows, small blobs and the tokens of
// callers are in the database; large blobs, archived conversations and snapshots are in
// the bucket, under a prefix for each tenant. All nodes see each other's commits, and
// followers are woken across nodes.
//
// The command line works on the tenant with the empty name. The database calls it
// "default", and that name means the same. With a keyring, everything is sealed
// before it leaves the node, separately for each tenant. The search index of an
// encrypted store is in memory.
//
// Migrate moves an embedded store into a tenant. Collecting, archiving and sweeping are
// left to callers of DB.Collect, DB.ArchiveIdle and Fleet.Sweep, on one node or several
// at once.
package fleet
