package cli

import "github.com/stet-dev/stet/workspace"

// ignoredText names ignored files that changed during a turn and cannot be restored.
func ignoredText(paths []string) string {
	return "ignored files that changed and were not captured before, so a rewind cannot restore them: " + few(paths, 10) +
		" ('stet config explain capture.ignored')"
}

// nameJSON is a path in a list.
type nameJSON struct {
	Path      string `json:"path"`
	PathBytes []byte `json:"path_bytes,omitempty"`
}

func namesJSON(paths []string) []nameJSON {
	out := make([]nameJSON, len(paths))
	for i, path := range paths {
		out[i] = nameJSON{path, workspace.PathBytes(path)}
	}
	return out
}
