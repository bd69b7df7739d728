// Package page is the service behind the web page: stet.v1.PageService, and the HTML
// of files, diffs and messages.
//
// It encodes what read models return and decides nothing itself: histories come from
// package timeline, sizes from package usage, events from package cloudagent. Calls
// that other clients need as well are in the services of package server, which also
// handles tokens and limits.
//
//	service := page.New(db, describe)
//	mux.Handle(stetv1connect.NewPageServiceHandler(service))
package page
