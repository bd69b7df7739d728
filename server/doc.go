// Package server answers Connect, gRPC, gRPC-Web and JSON on one port, with the
// web page beside it.
//
//	handler, err := server.New(db, &server.Options{Token: token})
//	err = server.Serve(ctx, listener, handler)
//
// Local mode promises that a web page which the user visits cannot reach it: it
// listens on loopback, wants a token, answers only to the hosts that it knows,
// and refuses requests that a browser marks as coming from elsewhere. What the
// calls mean is left to the services; codes of errors are in errors.go.
package server
