//go:build !linux && !darwin && !windows

package cli

import "errors"

// processAbove is not supported: no process is identified here, see checkpoint.ProcessOf.
func processAbove(int) (name string, above int, err error) { return "", 0, errors.ErrUnsupported }

// processesAbove is not supported.
func processesAbove() (map[int]int, error) { return nil, errors.ErrUnsupported }
