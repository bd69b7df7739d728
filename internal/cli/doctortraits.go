package cli

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/stet-dev/stet/workspace"
)

// traits reports what the file system of the workspace cannot do. None of it is a failure:
// docs/GUARANTEES.md says what it means for a rewind.
func (d *doctor) traits(dir string) {
	t, err := workspace.Probe(dir)
	if errors.Is(err, fs.ErrPermission) {
		d.report("file system", "not tested: the workspace is not writable", nil)
		return
	}
	d.report("file system", traitsText(t), err)
}

// traitsText lists what a file system cannot do.
func traitsText(t workspace.Traits) string {
	var lacks []string
	for _, trait := range []struct {
		lacking bool
		text    string
	}{
		{t.FoldsCase, "README and Readme are one name"},
		{t.Normalises, "accents are normalized"},
		{!t.Modes, "no permission bits: only the history keeps them"},
		{!t.Links, "no symbolic links: a rewind leaves them alone"},
		{!t.Swaps, "files cannot trade places: each is missing briefly during a rewind"},
		{!t.SyncsDirs, "directories cannot be synced: a power failure may revert a rewind"},
	} {
		if trait.lacking {
			lacks = append(lacks, trait.text)
		}
	}
	if len(lacks) == 0 {
		return "supports everything that a rewind needs"
	}
	return strings.Join(lacks, "; ")
}
