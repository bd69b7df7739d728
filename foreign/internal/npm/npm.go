// Package npm finds the version of a program that was installed as an npm package. It
// promises to run nothing and to read one small file.
package npm

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
)

// maxDepth is how far above the program its package.json is looked for.
const maxDepth = 4

// Version returns the version of the package that a program belongs to, and "" if the
// program is not from a package with one of the names.
func Version(program string, names ...string) string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	dir := filepath.Dir(real)
	for range maxDepth {
		if version := read(filepath.Join(dir, "package.json"), names); version != "" {
			return version
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

func read(path string, names []string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var manifest struct{ Name, Version string }
	if json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&manifest) != nil {
		return ""
	}
	for _, name := range names {
		if manifest.Name == name {
			return manifest.Version
		}
	}
	return ""
}
