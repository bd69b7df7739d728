package server

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/stet-dev/stet/internal/osfile"
	"github.com/stet-dev/stet/internal/private"
)

// TokenName is the usual name of the token file, in the directory of the store.
const TokenName = "token"

// TokenFile returns the token in a file, and creates both if missing. Only the owner
// may read it: a file that others can read is refused.
func TokenFile(path string) (string, error) {
	data, err := private.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(data))) >= 32 {
		return strings.TrimSpace(string(data)), nil
	}
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	var random [32]byte
	rand.Read(random[:])
	token := hex.EncodeToString(random[:])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*") // 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	if _, err := f.WriteString(token + "\n"); err != nil {
		f.Close()
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	return token, osfile.Rename(f.Name(), path)
}
