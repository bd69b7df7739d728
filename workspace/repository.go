package workspace

import (
	"path"
)

// gitName is the name of a git repository's own data: a directory, or a file in
// submodules and linked work trees.
const gitName = ".git"

// IsRepository reports whether a path names the data of a git repository. A scan captures
// the working files around it, never the data.
func IsRepository(p string) bool { return isGit(path.Base(p)) }

// passOver leaves out a name that is never captured. It lists the data of a repository
// below the root, so that its loss can be noticed.
func (w *worker) passOver(j *dirJob, i int) error {
	name, kind := j.names[i].name, j.names[i].kind
	if j.parent == nil || !isGit(name) {
		return nil
	}
	if kind == isUnknown {
		st, err := j.fd.lstat(name)
		if err != nil {
			return w.leaveOut(j, name, false, err)
		}
		kind = st.kind
	}
	return w.leave(j, i, kind, ReasonRepository)
}

// StampRepositories stamps up to limit git repositories: that of the root, those that a
// scan listed, and those directly in ignored directories. ChangedIgnored then finds the
// ones that are gone or were replaced; what git does inside them does not count as a
// change.
func StampRepositories(root string, skipped []Skipped, limit int) ([]IgnoredStamp, error) {
	dir, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.close()
	var stamps []IgnoredStamp
	add := func(path string) {
		if len(stamps) >= limit {
			return
		}
		if stamp, ok := stampAt(dir, path); ok {
			stamps = append(stamps, stamp)
		}
	}
	add(gitName)
	for _, k := range skipped {
		switch {
		case k.Reason == ReasonRepository:
			add(k.Path)
		case k.Reason.ByRule() && k.Dir:
			add(join(k.Path, gitName))
		}
	}
	return sortStamps(stamps), nil
}

// repositoryStamp identifies a repository. Git replaces the file of a linked work tree
// freely, so only its existence counts.
func repositoryStamp(path string, st fileStat) IgnoredStamp {
	s := IgnoredStamp{Path: path}
	if st.kind == isDir {
		s.Inode = st.ino
	}
	return s
}
