//go:build !linux

package fleet_test

import "time"

// treeCPU is not known here.
func treeCPU() time.Duration { return 0 }
