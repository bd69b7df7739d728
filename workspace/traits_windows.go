package workspace

import "path/filepath"

// onlyReadOnly is whether write permission is the only one that is stored.
const onlyReadOnly = true

// knownTraits returns the usual traits: whether links can be made depends on the user,
// and individual directories may distinguish names by case.
func knownTraits(string) (t Traits, known bool) { return Traits{FoldsCase: true}, false }

// knownModes reports that permission bits are not stored.
func knownModes(string) (modes, known bool) { return false, true }

// mayFold reports whether a directory may take several spellings for one name.
func mayFold(string) bool { return true }

// volumeOf identifies the file system that a directory is on.
func volumeOf(dir string) string { return filepath.VolumeName(dir) }
