package agents

import (
	"strings"

	"github.com/stet-dev/stet/internal/spelling"
)

// nearest returns which of the names a person probably meant, or "".
func nearest(name string, names []string) string {
	name = plain(name)
	if name == "" {
		return ""
	}
	best, least := "", 3
	for _, n := range names {
		p := plain(n)
		if strings.HasPrefix(p, name) && len(name) > 1 || strings.HasPrefix(name, p) && len(p) > 2 {
			return n
		}
		if d := spelling.Edits(name, p); d < least && d < len(p)-1 {
			best, least = n, d
		}
	}
	return best
}

// plain returns a name without the parts that people spell differently.
func plain(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}
