package workspace

import "path/filepath"

// onlyReadOnly is whether the one permission that is stored is that to write.
const onlyReadOnly = true

// knownTraits returns what is usual: whether links can be made depends on the user, and
// single directories may tell names of different case apart.
func knownTraits(string) (t Traits, known bool) { return Traits{FoldsCase: true}, false }

// knownModes reports that permission bits are not stored.
func knownModes(string) (modes, known bool) { return false, true }

// mayFold reports whether a directory may take several spellings for one name.
func mayFold(string) bool { return true }

// volumeOf identifies the file system that a directory is on.
func volumeOf(dir string) string { return filepath.VolumeName(dir) }
