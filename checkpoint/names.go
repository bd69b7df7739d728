package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/stet-dev/stet/internal/swapdir"
	"github.com/stet-dev/stet/workspace"
)

// A checkpoint may come from a system that allows more names than this one. A rewind
// finds out before it begins what it cannot restore: it leaves a path alone, and
// reports it, if the name or kind is not possible here, and it fails if two names are
// one name here, because nothing says which of the two is meant.

// sameNames are two paths that are the same on this file system.
type sameNames struct{ path, other string }

// markImpossible marks the paths whose state in the target is not possible on this
// system. It returns the pairs of paths to restore that this system cannot tell
// apart.
func (w *Workspace) markImpossible(states []PathState) ([]sameNames, error) {
	traits := workspace.TraitsOf(w.path)
	if isPlain(traits) {
		return nil, nil
	}
	bad, same, err := w.askNames(states)
	if err != nil {
		return nil, err
	}
	for i := range states { // directories come before what they hold
		s := &states[i]
		if s.Target == nil {
			continue
		}
		switch dir, _ := splitPath(s.Path); {
		case bad[s.Path] != "":
			s.Impossible = bad[s.Path]
		case bad[dir] != "":
			s.Impossible = bad[dir]
		case s.Target.Kind == workspace.Symlink && !traits.Links:
			s.Impossible = "symbolic links cannot be made here"
		}
		if s.Impossible != "" && isDir(s.Target) {
			bad[s.Path] = s.Impossible
		}
	}
	return same, nil
}

// isPlain reports whether a file system can hold anything that a checkpoint has.
func isPlain(t workspace.Traits) bool {
	return !t.FoldsCase && !t.Normalises && t.Modes && t.Links && runtime.GOOS != "windows"
}

// askNames asks the file system about names that may be restored and that not every
// file system can hold. It returns why paths are not possible, and the paths that are
// the same.
func (w *Workspace) askNames(states []PathState) (bad map[string]string, same []sameNames, err error) {
	bad = map[string]string{}
	comes := map[string][]string{} // by directory
	for i := range states {
		s := &states[i]
		if s.Target == nil || s.Present != nil || s.Excluded {
			continue
		}
		dir, name := splitPath(s.Path)
		if err := workspace.CheckHere(name); err != nil {
			bad[s.Path] = "this system cannot have the name"
			continue
		}
		comes[dir] = append(comes[dir], name)
	}
	var dirs []string
	var ask [][]string
	for dir, names := range comes {
		if names = unusual(names); len(names) > 0 {
			dirs, ask = append(dirs, dir), append(ask, names)
		}
	}
	if len(ask) == 0 {
		return bad, nil, nil
	}
	answers, err := swapdir.Ask(w.path, workspace.ProbeName(), ask)
	if errors.Is(err, os.ErrPermission) {
		return bad, nil, nil // a rewind says so
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ask the file system about names: %w", err)
	}
	for i, answer := range answers {
		for _, a := range answer {
			path := joinPath(dirs[i], a.Name)
			if a.Other == "" {
				bad[path] = "this file system cannot have the name"
			} else {
				same = append(same, sameNames{path, joinPath(dirs[i], a.Other)})
			}
		}
	}
	return bad, same, nil
}

// unusual lists the names of a directory that a file system may not be able to hold, or to
// tell apart.
func unusual(names []string) []string {
	slices.Sort(names)
	folded := make(map[string]int, len(names))
	for _, name := range names {
		folded[strings.ToLower(name)]++
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return isASCII(name) && workspace.WindowsName(name) == "" && folded[strings.ToLower(name)] == 1 && len(name) < 128
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// checkNames rejects actions that restore two names that are one name here, or a name
// that is the same as another that stays.
func (w *Workspace) checkNames(actions []Action, same []sameNames) error {
	traits := workspace.TraitsOf(w.path)
	if isPlain(traits) {
		return nil
	}
	after := make(map[string]*Action, len(actions))
	for i := range actions {
		after[actions[i].Path] = &actions[i]
	}
	var found []string
	for _, s := range same {
		if a, b := after[s.path], after[s.other]; a != nil && b != nil && a.After != nil && b.After != nil {
			found = append(found, fmt.Sprintf("%q and %q", s.other, s.path))
		}
	}
	root, err := os.OpenRoot(w.path)
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	defer root.Close()
	for i := range actions {
		a := &actions[i]
		if a.Kind != Create || !traits.FoldsCase && !traits.Normalises {
			continue
		}
		if dir, _ := splitPath(a.Path); after[dir] != nil && after[dir].Kind == Create {
			continue // it comes as a whole
		}
		other, err := spelledOtherwise(root, a.Path)
		if err != nil {
			return err
		}
		if other == "" {
			continue
		}
		if b := after[other]; b == nil || b.After != nil {
			found = append(found, fmt.Sprintf("%q and %q", other, a.Path))
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return fmt.Errorf("%w: %s", ErrSameName, strings.Join(slices.Compact(found), ", "))
}

// spelledOtherwise returns the path that the file system finds for another path, if its
// directory lists it under another spelling.
func spelledOtherwise(root *os.Root, path string) (string, error) {
	dir, name := splitPath(path)
	names, err := readNames(root, cmp.Or(dir, "."))
	if isNotExist(err) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil // it is yet to come
	}
	if err != nil || slices.Contains(names, name) {
		return "", err
	}
	// The system may cache for a second that an unlisted name does not exist, so look
	// one up only where the list cannot answer.
	if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 && isASCII(name) {
		return joinPath(dir, names[i]), nil
	}
	if isASCII(name) {
		return "", nil
	}
	info, err := root.Lstat(path)
	if err != nil {
		return "", nil
	}
	for _, n := range names {
		if there, err := root.Lstat(joinPath(dir, n)); err == nil && os.SameFile(info, there) {
			return joinPath(dir, n), nil
		}
	}
	return "", nil
}

func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// lost describes what the file system cannot hold of what actions restore.
func (w *Workspace) lost(actions []Action) []string {
	if workspace.TraitsOf(w.path).Modes {
		return nil
	}
	var files []string
	for i := range actions {
		a := &actions[i]
		if a.Changes() && isFile(a.After) && a.After.Mode&0o111 != 0 {
			files = append(files, a.Path)
		}
	}
	if len(files) == 0 {
		return nil
	}
	text := files[0]
	if more := len(files) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return []string{"the right to run " + text + ": this file system has no permission bits; the history keeps them"}
}
