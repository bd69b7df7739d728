// Package realservers starts the servers that tests need: real ones, from the
// programs that users run, on loopback and in their own directories.
//
// A test binary starts each kind of server once, on first use, and stops all of
// them at its end:
//
//	func TestMain(m *testing.M) { os.Exit(realservers.Run(m)) }
//
//	func TestRows(t *testing.T) {
//		dsn := realservers.Postgres(t, realservers.PostgresOptions{}).NewDatabase(t)
//		…
//	}
//
// A missing program fails the test. The test is skipped only if setup has recorded
// that this machine cannot have the program (testenv.Need).
package realservers

import (
	"flag"
	"sync"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// ending is what Run does when the tests are over.
var ending struct {
	sync.Mutex
	calls []func()
}

// atEnd registers fn to be called when the tests are over, latest first.
func atEnd(fn func()) {
	ending.Lock()
	defer ending.Unlock()
	ending.calls = append(ending.calls, fn)
}

// Run runs the tests of a binary and stops the servers that they started.
func Run(m *testing.M) int {
	if testenv.LeftOut("postgres") != "" {
		_ = flag.Set("test.skip", "^Example") // they have no testing.TB to skip with
	}
	code := m.Run()
	ending.Lock()
	defer ending.Unlock()
	for i := len(ending.calls) - 1; i >= 0; i-- {
		ending.calls[i]()
	}
	ending.calls = nil
	return code
}
