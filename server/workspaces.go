package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
)

// errForeignPlace says the same of every place that is not allowed, whether
// something is there or not.
var errForeignPlace = connect.NewError(connect.CodePermissionDenied, errors.New("that directory is not among the workspaces that this server may touch"))

// places are the directories in which workspaces may lie; nil has none.
type places struct {
	any  bool
	dirs []string // without symbolic links
}

// newPlaces resolves directories, which must exist: a list that allows something
// else than its author thought is worse than none.
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
			return nil, fmt.Errorf("workspaces: %s is no absolute path", path)
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

// CheckWorkspaces refuses lists that would let tenants see each other's files:
// each entry must be for one tenant.
func CheckWorkspaces(dirs []string) error {
	for _, dir := range dirs {
		if !strings.Contains(dir, "=") && !strings.Contains(dir, "{tenant}") {
			return fmt.Errorf("workspaces: %s would be shared by all tenants; write TENANT=DIR, or {tenant} in the path", dir)
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
