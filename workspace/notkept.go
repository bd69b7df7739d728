package workspace

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
)

// Lack is a property of a file that no tree holds.
type Lack string

// The properties that trees do not hold.
const (
	// LackLinks: the file has other names, too. They come back as files of their own.
	LackLinks Lack = "hard-links"
	// LackOwner: the file has another owner than a restored one would have.
	LackOwner Lack = "owner"
	// LackAttributes: the file has extended attributes, such as an ACL.
	LackAttributes Lack = "attributes"
)

// notKeptExamples is the number of files that are named for each Lack.
const notKeptExamples = 5

// NotKept counts the examined files that have properties which no tree holds. Attributes
// are looked up only for files that are read, because each lookup costs a system call.
type NotKept struct {
	Links      int64 `json:"hard_links"`
	Owners     int64 `json:"owners"`
	Attributes int64 `json:"attributes"`
	// Examples are the first few of each kind, sorted by path.
	Examples []NotKeptFile `json:"examples"`
}

// NotKeptFile is an example.
type NotKeptFile struct {
	Path string `json:"path"`
	What Lack   `json:"what"`
}

// MarshalJSON adds the bytes of a path that is not text.
func (f NotKeptFile) MarshalJSON() ([]byte, error) {
	type plain NotKeptFile
	return json.Marshal(struct {
		plain
		PathBytes []byte `json:"path_bytes,omitempty"`
	}{plain(f), PathBytes(f.Path)})
}

// None reports whether trees hold everything about the files.
func (n *NotKept) None() bool { return n.Links == 0 && n.Owners == 0 && n.Attributes == 0 }

// Of returns the number of files with a property, and their examples.
func (n *NotKept) Of(what Lack) (count int64, examples []string) {
	for _, f := range n.Examples {
		if f.What == what {
			examples = append(examples, f.Path)
		}
	}
	return *n.count(what), examples
}

func (n *NotKept) count(what Lack) *int64 {
	switch what {
	case LackLinks:
		return &n.Links
	case LackOwner:
		return &n.Owners
	}
	return &n.Attributes
}

// add counts a file, and keeps it as an example if it is one of the first.
func (n *NotKept) add(path string, what Lack) {
	*n.count(what)++
	n.example(NotKeptFile{path, what})
}

func (n *NotKept) example(f NotKeptFile) {
	at, _ := slices.BinarySearchFunc(n.Examples, f, func(a, b NotKeptFile) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.What, b.What))
	})
	n.Examples = slices.Insert(n.Examples, at, f)
	have, last := 0, 0
	for i, e := range n.Examples {
		if e.What == f.What {
			have, last = have+1, i
		}
	}
	if have > notKeptExamples {
		n.Examples = slices.Delete(n.Examples, last, last+1)
	}
}

// merge adds what another worker found.
func (n *NotKept) merge(o *NotKept) {
	n.Links, n.Owners, n.Attributes = n.Links+o.Links, n.Owners+o.Owners, n.Attributes+o.Attributes
	for _, f := range o.Examples {
		n.example(f)
	}
}

// lacks counts the properties of a captured file that the tree does not hold.
func (w *worker) lacks(j *dirJob, name string, st fileStat, attributes bool) {
	if st.links <= 1 && st.uid == w.s.owner && !attributes {
		return
	}
	path := join(j.path, name)
	if st.links > 1 {
		w.notKept.add(path, LackLinks)
	}
	if st.uid >= 0 && w.s.owner >= 0 && st.uid != w.s.owner {
		w.notKept.add(path, LackOwner)
	}
	if attributes {
		w.notKept.add(path, LackAttributes)
	}
}

// restoredOwner returns who owns the files that are restored in a directory: root
// gives them to the owner of the directory, others keep them.
func restoredOwner(root dirFD) int64 {
	if os.Geteuid() != 0 {
		return int64(os.Geteuid())
	}
	st, err := root.stat()
	if err != nil {
		return -1
	}
	return st.uid
}
