// Package server answers Connect, gRPC, gRPC-Web and JSON on one port, with the
// web page beside it.
//
//	handler, err := server.New(db, &server.Options{Token: token})
//	err = server.Serve(ctx, listener, handler)
//
// New serves one store to its owner. It promises that a web page which the user
// visits cannot reach it: it wants a token, answers only to the hosts that it
// knows, and refuses requests that a browser marks as coming from elsewhere.
//
// NewTenants serves many stores, one for each tenant, to those who have a token:
//
//	tokens := access.OpenTokens(path)
//	srv, err := server.NewTenants(&server.DirTenants{Dir: dir}, tokens.Verify, opts)
//	err = server.ServeTLS(ctx, listener, srv, certificate)
//
// It promises that no call of a tenant reaches the store of another: whose token it
// is decides which store a call gets, before anything of the call is looked at, and
// what answers for a store knows no other. Limits hold for each tenant, and what is
// taken away is noted before it is done.
//
// What the calls mean is left to the services, tokens and limits to package access;
// codes of errors are in errors.go, the scope that each call needs in procedures.go.
package server
