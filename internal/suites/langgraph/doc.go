// Package langgraph runs the suite for checkpoint savers of LangGraph with the saver in
// clients/langgraph, against the server of this repository. `make test` runs it on the
// embedded store, `make test-suites` on every kind of store.
package langgraph
