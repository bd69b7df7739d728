package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-dev/stet/server"
)

func TestTokenFileThatOthersCanReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), server.TokenName)
	token, err := server.TokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := server.TokenFile(path); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
		t.Errorf("mode 0644: %v", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := server.TokenFile(path); err != nil || again != token {
		t.Errorf("mended: %v, the same token: %v", err, again == token)
	}
}
