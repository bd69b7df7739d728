package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestProcessAbove(t *testing.T) {
	name, above, err := processAbove(os.Getpid())
	if runtime.GOOS == "freebsd" {
		t.Skip("processes are not identified here")
	}
	self, pathErr := os.Executable()
	if pathErr != nil {
		t.Fatal(pathErr)
	}
	base := strings.ToLower(strings.TrimSuffix(filepath.Base(self), ".exe"))
	if err != nil || above != os.Getppid() || !strings.HasPrefix(base, strings.ToLower(name)) || name == "" {
		t.Errorf("%q below %d, %v; want %q below %d", name, above, err, base, os.Getppid())
	}
	if name, above, err := processAbove(1 << 30); err == nil {
		t.Errorf("no such process: %q below %d", name, above)
	}
}
