package cli

import "github.com/stet-dev/stet/workspace"

// ignoredText names ignored files that changed during a turn and cannot be restored.
func ignoredText(paths []string) string {
	return "ignored files that changed and were not captured before, so a rewind cannot restore them: " + few(paths, 10) +
		" ('stet config explain capture.ignored')"
}

// repositoriesText names git repositories that are gone.
func repositoriesText(paths []string) string {
	return "git repositories that were deleted or replaced; no checkpoint holds their commits, so a rewind cannot restore them: " + few(paths, 10)
}

// splitLost separates the git repositories that a turn lost from the ignored files that it
// changed.
func splitLost(paths []string) (ignored, repositories []string) {
	for _, path := range paths {
		if workspace.IsRepository(path) {
			repositories = append(repositories, path)
		} else {
			ignored = append(ignored, path)
		}
	}
	return ignored, repositories
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
