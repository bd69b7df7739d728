//go:build portable || !linux

package checkpoint

// trustsStamps is whether scans believe stamps of files that changed a moment ago.
const trustsStamps = false
