package claudecode

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/stet-dev/stet/foreign"
)

var _ foreign.Cleaner = Adapter{}

const day = 24 * time.Hour

// cleanupPeriod finds the setting in a file that may have comments.
var cleanupPeriod = regexp.MustCompile(`(?m)^[^/\n]*"cleanupPeriodDays"\s*:\s*(\d{1,5})\b`)

// Cleanup returns how long Claude Code keeps a session after its last change: 30
// days, or as the user's settings say.
func (Adapter) Cleanup(h foreign.Host) time.Duration {
	data, err := os.ReadFile(filepath.Join(dir(h), "settings.json"))
	if m := cleanupPeriod.FindSubmatch(data); err == nil && m != nil {
		if days, err := strconv.Atoi(string(m[1])); err == nil && days > 0 {
			return time.Duration(days) * day
		}
	}
	return 30 * day
}
