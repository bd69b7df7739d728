//go:build !unix

package private

import "io/fs"

const hasModes = false

func ofRoot(fs.FileInfo) bool { return false }
