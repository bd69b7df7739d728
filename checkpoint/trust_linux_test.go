//go:build !portable

package checkpoint

// trustsStamps is whether scans believe stamps of files that changed a moment ago.
const trustsStamps = true
