package conversation

import (
	"net/url"
	"path/filepath"
	"unicode/utf8"
)

// WorkspaceName returns the text by which conversations name a workspace: its path, or a
// file URI if the path is not UTF-8, which records cannot hold. Unlike a text with
// replacement characters, it names one directory only.
func WorkspaceName(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}
