package workspace

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// pathSet is a set of paths as a tree of names. A nil set is empty.
type pathSet struct {
	all  bool // this path and everything below it is in the set
	kids map[string]*pathSet
}

func (s *pathSet) kid(name string) *pathSet {
	if s == nil {
		return nil
	}
	return s.kids[name]
}

// whole reports whether the path is itself in the set.
func (s *pathSet) whole() bool { return s != nil && s.all }

func (s *pathSet) add(rel string) {
	if rel != "." {
		for name := range strings.SplitSeq(rel, "/") {
			if s.kids == nil {
				s.kids = map[string]*pathSet{}
			}
			kid := s.kids[name]
			if kid == nil {
				kid = &pathSet{}
				s.kids[name] = kid
			}
			s = kid
		}
	}
	s.all = true
}

// relPath makes a caller's path relative to the root, "." for the root itself.
// Absolute paths inside the root are accepted, because editors and hooks use them.
func relPath(root, p string) (string, error) {
	if filepath.IsAbs(p) {
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return "", fmt.Errorf("%w: %q is not inside %q", ErrBadPath, p, root)
		}
		p = rel
	}
	if p == "" {
		return "", fmt.Errorf("%w: empty path", ErrBadPath)
	}
	rel := path.Clean(filepath.ToSlash(p))
	switch {
	case rel == ".." || strings.HasPrefix(rel, "../"), strings.HasPrefix(rel, "/") || filepath.VolumeName(rel) != "": // the last two on Windows
		return "", fmt.Errorf("%w: %q is not inside %q", ErrBadPath, p, root)
	case strings.IndexByte(rel, 0) >= 0:
		return "", fmt.Errorf("%w: %q holds a NUL", ErrBadPath, p)
	}
	return rel, nil
}

// addAll adds paths of a caller. With rulesWiden an ignore file adds its directory,
// where it may change what is captured.
func (s *pathSet) addAll(root string, paths []string, rulesWiden bool) error {
	for _, p := range paths {
		rel, err := relPath(root, p)
		if err != nil {
			return err
		}
		if rulesWiden && IsIgnoreFile(path.Base(rel)) {
			rel = path.Dir(rel)
		}
		s.add(rel)
	}
	return nil
}
