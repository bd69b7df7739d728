package cli

import "github.com/stet-dev/stet/workspace"

// ignoredText names ignored, excluded and secrets files that changed during a turn and
// cannot be restored.
func ignoredText(paths []string) string {
	return "changed files that checkpoints leave out, so a rewind cannot restore them: " + few(paths, 10) +
		" ('stet config explain capture.ignored')"
}

// secretsText names the files that are left out and usually hold secrets, or returns "".
func secretsText(skipped []workspace.Skipped) string {
	usual := workspace.Options{Secrets: workspace.SecretFiles}
	var paths []string
	hint := ""
	for _, k := range skipped {
		if k.Reason == workspace.ReasonSecret {
			hint = " (capture.secrets)"
		}
		if k.Reason == workspace.ReasonSecret || k.Reason == workspace.ReasonIgnored && !k.Dir && usual.LeftOut(k.Path) != "" {
			paths = append(paths, k.Path)
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return plural(int64(len(paths)), "file") + " not captured: " + few(paths, 4) + hint
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
