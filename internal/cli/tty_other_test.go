//go:build !linux

package cli

import "github.com/rogpeppe/go-internal/testscript"

func scriptTTY(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("this system has no terminals for tests")
}
