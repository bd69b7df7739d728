//go:build !unix

package main

import "errors"

// replace is not possible here.
func replace(string) error { return errors.ErrUnsupported }
