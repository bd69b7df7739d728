package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
)

// errForeignPlace is the same for every forbidden path, whether or not it exists.
var errForeignPlace = connect.NewError(connect.CodePermissionDenied, errors.New("this server may not use that directory as a workspace"))

// places are the directories that may contain workspaces; nil has none.
type places struct {
	any  bool
	dirs []string // without symbolic links
}

// newPlaces resolves directories, which must exist, so that a list never allows
// something unintended.
func newPlaces(dirs []string, tenant string) (*places, error) {
	p := &places{}
	for _, dir := range dirs {
		owner, path, ok := strings.Cut(dir, "=")
		switch {
		case !ok:
			path = dir
		case owner != tenant:
			continue
		}
		path = strings.ReplaceAll(path, "{tenant}", tenant)
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("workspaces: %s is not an absolute path", path)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			if strings.Contains(dir, "{tenant}") {
				continue // this tenant has none
			}
			return nil, fmt.Errorf("workspaces: %w", err)
		}
		p.dirs = append(p.dirs, real)
	}
	return p, nil
}

// CheckWorkspaces rejects lists that would let tenants see each other's files: each
// entry must be for one tenant.
func CheckWorkspaces(dirs []string) error {
	for _, dir := range dirs {
		if !strings.Contains(dir, "=") && !strings.Contains(dir, "{tenant}") {
			return fmt.Errorf("workspaces: %s would be shared by all tenants; use TENANT=DIR, or {tenant} in the path", dir)
		}
	}
	return nil
}

// resolve returns a path without symbolic links if it is allowed.
func (p *places) resolve(path string) (string, error) {
	if p != nil && p.any {
		return path, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !p.holds(real) {
		return "", errForeignPlace
	}
	return real, nil
}

// holds reports whether a path without symbolic links is in one of the places.
func (p *places) holds(path string) bool {
	if p == nil || p.any {
		return p != nil
	}
	for _, dir := range p.dirs {
		if rest, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rest) {
			return true
		}
	}
	return false
}
