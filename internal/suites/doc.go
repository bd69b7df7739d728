// Package suites runs the conformance suites that others publish against 'stet serve' as
// a process of its own. The suites come from npm and are run by vitest; the tests start
// servers and read what the suites report. The contracts of a suite that npm does not have
// are tests of ours in Python. `make test` runs a quick cut of each on the
// embedded store, `make test-suites` all of it on every kind of store. Servers are also
// killed under load.
package suites
