package workspace

import (
	"fmt"
	"strings"
)

// LeavesOutDir returns why a scan of root passes over a directory below it by the rules of
// now: those of the options and of the ignore files, for it or for a directory above it. It
// returns "" if it does not, and if there is no such directory. What an earlier tree has of
// the directory, and what an agent touched there, is captured nevertheless.
func (o *Options) LeavesOutDir(root, dir string) (Reason, error) {
	if err := CheckPath(dir); err != nil {
		return "", err
	}
	fd, err := openRoot(root)
	if err != nil {
		return "", fmt.Errorf("read rules of %q: %w", root, err)
	}
	defer func() { fd.close() }()
	given, rest := o.given(), dir
	r := newRules(nil, "", readRules(fd, gitIgnoreName), readRules(fd, stetIgnoreName), readExclude(fd))
	for at := ""; ; {
		name, below, more := strings.Cut(rest, "/")
		at, rest = join(at, name), below
		if why := given.reason(at, name, true); why != "" {
			return why, nil
		}
		if !o.NoIgnore && r.ignores(at, name, true) {
			return ReasonIgnored, nil
		}
		if !more {
			return "", nil
		}
		next, err := fd.openDir(name)
		if err != nil {
			return "", nil // a link, or gone: nothing in it is left out by a rule
		}
		fd.close()
		fd = next
		r = newRules(r, at, readRules(fd, gitIgnoreName), readRules(fd, stetIgnoreName), nil)
	}
}

// readExclude returns the rules that git keeps beside those of the repository.
func readExclude(root dirFD) []byte {
	info, err := root.openDir(gitInfoPath)
	if err != nil {
		return nil
	}
	defer info.close()
	return readRules(info, excludeName)
}
