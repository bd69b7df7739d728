package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFilesThatOthersCanReadAreRefused(t *testing.T) {
	if !hasModes {
		t.Skip("no modes here")
	}
	path := filepath.Join(t.TempDir(), "my key")
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, good := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o700: true, 0o640: false, 0o604: false, 0o644: false, 0o620: false, 0o601: false,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		data, err := ReadFile(path)
		if good && (err != nil || string(data) != "secret") {
			t.Errorf("mode %o: %q, %v", mode, data, err)
		}
		if !good && (!errors.Is(err, ErrExposed) || !strings.Contains(err.Error(), `chmod 600 "`+path+`"`)) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}
