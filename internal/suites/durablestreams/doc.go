// Package durablestreams runs the conformance suite of the Durable Streams protocol
// against the server of this repository. The suite comes from npm, at the version that
// package.json names; the tests of this package start servers and read what the suite
// reports. `make test` runs a quick cut on the embedded store, `make test-suites` all of
// it on every kind of store.
package durablestreams
