package cli

import (
	"fmt"
	"math"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/stet-dev/stet/timeline"
)

// parseAge reads a duration that may also be in days, such as 90d; empty is 0.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		return 0, fmt.Errorf("invalid age %q; use 90d or 36h", text)
	}
	return age, nil
}

// duration formats how long something took.
func duration(d time.Duration) string { return timeline.DurationText(d) }

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40}, {"B", 1},
}

// parseSize reads a number of bytes with or without a unit; empty is 0.
func parseSize(text string) (int64, error) {
	number, unit := strings.TrimSpace(text), 1.0
	if number == "" {
		return 0, nil
	}
	for _, u := range sizeUnits {
		if n := len(number) - len(u.suffix); n > 0 && strings.EqualFold(number[n:], u.suffix) {
			number, unit = strings.TrimSpace(number[:n]), u.bytes
			break
		}
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value < 0 || math.IsNaN(value) || value*unit > math.MaxInt64/2 {
		return 0, fmt.Errorf("invalid size %q; use 500MiB or 2GiB", text)
	}
	return int64(value * unit), nil
}

// author returns the name of the user for the log.
func author() string {
	for _, variable := range []string{"STET_AUTHOR", "USER"} {
		if name := os.Getenv(variable); name != "" {
			return strings.ToValidUTF8(name, "\uFFFD")
		}
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "user"
}
