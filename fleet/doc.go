// Package fleet puts the stores of many tenants on one Postgres database and,
// where there is one, one bucket, for any number of stateless nodes.
//
//	f, err := fleet.Open(ctx, fleet.Config{
//		Database: "postgres://stet@db1,db2/stet?target_session_attrs=read-write",
//		Blobs:    "s3://my-bucket/stet?region=eu-central-1",
//	})
//	defer f.Close()
//	db, err := f.Open(ctx, "shop") // a *stet.DB like any other
//	srv, err := server.NewTenants(f, f.Tokens().Verify, &server.Options{Ready: f.Ready, Code: fleet.Code, Shared: true})
//
// A node keeps nothing that another one needs: rows, small blobs and the tokens of
// callers are in the database, large blobs, sealed conversations and snapshots in
// the bucket, under a prefix of each tenant's own. What one node has committed,
// every other one sees; followers are woken across nodes.
//
// The tenant with the empty name is the one that the command line works on; it is
// called "default" in the database, and that name means the same. With a keyring
// everything is sealed before it leaves the node, each tenant's data for that
// tenant only. The search index of an encrypted store is in memory.
//
// Migrate moves an embedded store into a tenant. Collecting, sealing and sweeping
// are left to those who call DB.Collect, DB.SealIdle and Fleet.Sweep, on one node
// or on several at once.
package fleet
