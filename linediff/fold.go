package linediff

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Stat is one changed file in a list: what happened to it, how many lines were added
// and removed, and a remark.
type Stat struct {
	Path           string
	Op             string
	Added, Removed uint64
	Note           string
}

// Folded is a line of a folded list: a file, or everything below a directory.
type Folded struct {
	// Path is the path of the file, "dir/" for everything below a directory, or "dir/*"
	// for the files in it but not in its subdirectories.
	Path string
	// Files is the number of files; 1 for a file.
	Files int
	// Op and Note are common to all its files, or "" if they differ.
	Op, Note       string
	Added, Removed uint64
}

// Fold shortens a list of files to at most that many lines, if it can: it sums up
// directories, and shows those with the most files in more detail. A list that is
// short enough stays unchanged.
func Fold(files []Stat, most int) []Folded {
	if len(files) <= most {
		out := make([]Folded, len(files))
		for i, f := range files {
			out[i] = sum(f.Path, files[i:i+1])
		}
		return out
	}
	root := &folder{}
	for _, f := range files {
		root.add(strings.Split(f.Path, "/"), f)
	}
	parts := slices.Clone(root.dirs)
	if len(root.files) > 0 {
		parts = append(parts, &folder{flat: true, files: root.files})
	}
	for {
		at := next(parts, most)
		if at < 0 {
			break
		}
		parts = slices.Replace(parts, at, at+1, parts[at].parts()...)
	}
	out := make([]Folded, 0, len(parts))
	for _, p := range parts {
		out = append(out, sum(p.name(), p.all()))
	}
	slices.SortFunc(out, func(a, b Folded) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// next returns the part with the most files that can be shown in more detail, or -1.
func next(parts []*folder, most int) int {
	at, files := -1, 1
	for i, p := range parts {
		room := most - len(parts) + 1
		if n := len(p.all()); n > files && len(p.parts()) <= room {
			at, files = i, n
		}
	}
	return at
}

// folder is a directory, or the files of one without those below.
type folder struct {
	path  string
	flat  bool // only the files, without directories
	dirs  []*folder
	files []Stat
}

func (f *folder) add(names []string, file Stat) {
	if len(names) == 1 {
		f.files = append(f.files, file)
		return
	}
	below := path.Join(f.path, names[0])
	i := slices.IndexFunc(f.dirs, func(d *folder) bool { return d.path == below })
	if i < 0 {
		i = len(f.dirs)
		f.dirs = append(f.dirs, &folder{path: below})
	}
	f.dirs[i].add(names[1:], file)
}

// parts returns what a folder consists of: its directories and, as one part, its files;
// the files one by one if there is nothing else.
func (f *folder) parts() []*folder {
	out := slices.Clone(f.dirs)
	switch {
	case len(f.files) > 0 && len(f.dirs) > 0:
		return append(out, &folder{path: f.path, flat: true, files: f.files})
	case len(f.dirs) == 0:
		for i := range f.files {
			out = append(out, &folder{path: f.path, flat: true, files: f.files[i : i+1]})
		}
	}
	return out
}

// all returns the files below a folder.
func (f *folder) all() []Stat {
	out := slices.Clone(f.files)
	for _, d := range f.dirs {
		out = append(out, d.all()...)
	}
	return out
}

func (f *folder) name() string {
	switch all := f.all(); {
	case len(all) == 1:
		return all[0].Path
	case f.flat:
		return path.Join(f.path, "*")
	}
	return f.path + "/"
}

// sum adds up files.
func sum(name string, files []Stat) Folded {
	out := Folded{Path: name, Files: len(files), Op: files[0].Op, Note: files[0].Note}
	for _, f := range files {
		out.Added += f.Added
		out.Removed += f.Removed
		if f.Op != out.Op {
			out.Op = ""
		}
		if f.Note != out.Note {
			out.Note = ""
		}
	}
	return out
}
