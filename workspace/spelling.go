package workspace

import (
	"io/fs"
	"strings"
)

// A path exists only if its directory lists that exact spelling. In a directory that
// accepts several spellings of one name, stat alone does not show that.

// spell looks up the requested names of a job in the directory itself. A name that is not
// listed is marked as missing, and an entry that is listed under another spelling of it is
// examined too: the caller may mean that one.
func (w *worker) spell(j *dirJob) error {
	if !w.s.mayFold() {
		return nil
	}
	w.stats.listed++
	listed, err := j.fd.list(w.dirBuf)
	if err != nil {
		return err
	}
	kinds := make(map[string]fileKind, len(listed))
	folded := make(map[string][]dirent, len(listed))
	for _, e := range listed {
		kinds[e.name] = e.kind
		lower := strings.ToLower(e.name)
		folded[lower] = append(folded[lower], e)
	}
	given := len(j.names)
	for i := range given {
		name := j.names[i].name
		if kind, ok := kinds[name]; ok {
			j.names[i].kind = kind
			continue
		}
		j.names[i].kind = isMissing
		others := folded[strings.ToLower(name)]
		j.names = append(j.names, others...)
	}
	w.misspelled(j, kinds)
	return nil
}

// misspelled adds names of the previous tree that are other spellings of a name to
// examine and that the directory does not list.
func (w *worker) misspelled(j *dirJob, listed map[string]fileKind) {
	if j.prev == nil {
		return
	}
	given := make(map[string]bool, len(j.names))
	for i := range j.names {
		given[strings.ToLower(j.names[i].name)] = true
	}
	for i := range j.prev.entries {
		name := j.prev.entries[i].name
		if _, ok := listed[name]; !ok && given[strings.ToLower(name)] {
			j.names = append(j.names, dirent{name: name, kind: isMissing})
		}
	}
}

// missing records that a name does not exist.
func (w *worker) missing(j *dirJob, name string) error {
	return w.leaveOut(j, name, false, fs.ErrNotExist)
}
