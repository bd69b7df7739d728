package swapdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Traits is what the file system of a directory can do.
type Traits struct {
	// FoldsCase means that Readme and README are one name.
	FoldsCase bool
	// Normalises means that a letter with an accent and the same letter followed by the
	// accent are one name, or that names are stored in one of the two forms.
	Normalises bool
	// Swaps means that two files can trade places in one step.
	Swaps bool
	// Links means that this process can make symbolic links.
	Links bool
	// Modes means that permission bits are stored.
	Modes bool
	// SyncsDirs means that names can be made durable.
	SyncsDirs bool
}

// Probe tries out what the file system of a directory can do. It works in a staging
// directory of the given name, and removes it.
func Probe(path, stage string) (t Traits, err error) {
	err = inside(path, stage, func(s *stageDir, root *os.Root) error {
		for _, name := range []string{"Aa", "b"} {
			if err := root.WriteFile(name, []byte(name), 0o600); err != nil {
				return err
			}
		}
		t.FoldsCase = exists(root, "aA")
		t.Swaps = s.swap(s.path("Aa"), "b") == nil
		t.Modes = keepsMode(root, "b", 0o640) && keepsMode(root, "b", 0o755)
		t.Links = root.Symlink("b", "link") == nil
		if root.WriteFile("\u00e9", nil, 0o600) == nil {
			names, err := namesIn(root)
			t.Normalises = exists(root, "e\u0301") || err == nil && !slices.Contains(names, "\u00e9")
		}
		if dir, err := root.Open("."); err == nil {
			t.SyncsDirs = dir.Sync() == nil
			dir.Close()
		}
		return nil
	})
	return t, err
}

func keepsMode(root *os.Root, name string, mode fs.FileMode) bool {
	if root.Chmod(name, mode) != nil {
		return false
	}
	info, err := root.Lstat(name)
	return err == nil && info.Mode().Perm() == mode
}

func exists(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

func namesIn(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	return names, errors.Join(err, dir.Close())
}

// BadName is a name that a directory cannot hold.
type BadName struct {
	Name string
	// Other is another one of the names, which is the same to the file system; "" if the
	// name itself cannot be stored as it is spelled.
	Other string
}

// Ask finds out which of some names the file system of a directory cannot hold together
// in one directory, for several such directories. It makes the names in a staging
// directory, and removes it.
func Ask(path, stage string, dirs [][]string) ([][]BadName, error) {
	out := make([][]BadName, len(dirs))
	err := inside(path, stage, func(_ *stageDir, root *os.Root) error {
		for i, names := range dirs {
			at := strconv.Itoa(i)
			if err := root.Mkdir(at, 0o700); err != nil {
				return err
			}
			dir, err := root.OpenRoot(at)
			if err != nil {
				return err
			}
			out[i], err = ask(dir, names)
			if err = errors.Join(err, dir.Close()); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// plainSlot is a name that every file system can hold.
const plainSlot = "stet-plain-name"

func ask(dir *os.Root, names []string) ([]BadName, error) {
	var bad []BadName
	made := make([]fs.FileInfo, 0, len(names))
	by := make([]string, 0, len(names))
	for _, name := range names {
		if there, err := dir.Lstat(name); err == nil {
			bad = append(bad, BadName{Name: name, Other: sameName(name, there, by, made)})
			continue
		}
		if err := dir.WriteFile(name, nil, 0o600); err != nil {
			// If a harmless name fails as well, it is not the name.
			if err := dir.WriteFile(plainSlot, nil, 0o600); err != nil {
				return nil, err
			}
			bad = append(bad, BadName{Name: name})
			continue
		}
		info, err := dir.Lstat(name)
		if err != nil {
			bad = append(bad, BadName{Name: name})
			continue
		}
		made, by = append(made, info), append(by, name)
	}
	listed, err := namesIn(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range by {
		if !slices.Contains(listed, name) {
			bad = append(bad, BadName{Name: name})
		}
	}
	return bad, nil
}

// sameName returns the one of some names under which a file was made that is found under
// another name, too. A file system may give it another number there.
func sameName(name string, there fs.FileInfo, by []string, made []fs.FileInfo) string {
	i := slices.IndexFunc(made, func(info fs.FileInfo) bool { return os.SameFile(info, there) })
	if i < 0 {
		i = slices.IndexFunc(by, func(other string) bool { return strings.EqualFold(other, name) })
	}
	if i < 0 { // it differs in its accents
		i = slices.IndexFunc(by, func(other string) bool { return len([]rune(other)) < len(other) })
	}
	if i < 0 {
		return ""
	}
	return by[i]
}

// inside makes a staging directory, calls fn with it and removes it.
func inside(path, name string, fn func(*stageDir, *os.Root) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	r, err := Open(path, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	s, err := r.d.stage(name, true)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(path, name))
	if err == nil {
		err = errors.Join(fn(s, root), root.Close())
	}
	s.close()
	return errors.Join(err, r.d.removeStage(name))
}
