package claudecode_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/claudecode"
	"github.com/stet-dev/stet/foreign/foreigntest"
)

func TestCleanup(t *testing.T) {
	for settings, days := range map[string]int{
		"":                          30,
		`{"model":"opus"}`:          30,
		`{"cleanupPeriodDays": 90}`: 90,
		"{\n// mine\n\"a\":1,\n  \"cleanupPeriodDays\" : 7\n}": 7,
		"{\n// \"cleanupPeriodDays\": 7\n}":                    30,
		`{"cleanupPeriodDays": "x"}`:                           30,
	} {
		h := foreign.Host{Home: t.TempDir()}
		if settings != "" {
			foreigntest.Put(t, filepath.Join(h.Home, ".claude", "settings.json"), settings)
		}
		if got := claudecode.New().Cleanup(h); got != time.Duration(days)*24*time.Hour {
			t.Errorf("%s: %v", settings, got)
		}
	}
}
