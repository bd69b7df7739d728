// Package server answers Connect, gRPC, gRPC-Web and JSON on one port, and serves the
// web page.
//
//	handler, err := server.New(db, &server.Options{Token: token})
//	err = server.Serve(ctx, listener, handler)
//
// New serves one store to its owner. Web pages that the user visits cannot reach it:
// it requires a token, answers only to known hosts, and refuses requests that a
// browser marks as cross-site.
//
// NewTenants serves many stores, one for each tenant, to callers with a token:
//
//	tokens := access.OpenTokens(path)
//	srv, err := server.NewTenants(&server.DirTenants{Dir: dir}, tokens.Verify, opts)
//	err = server.ServeTLS(ctx, listener, srv, certificate)
//
// No call of a tenant reaches the store of another: the token selects the store
// before anything of the call is read, and the handlers of a store have no access to
// others. Limits apply to each tenant, and destructive calls are recorded before they
// run.
//
// The services implement the calls, package access implements tokens and limits;
// error codes are in errors.go, the scopes of calls in procedures.go.
package server
