package cursor

import "time"

// Options shape a Store. The zero value, and nil, read without ever writing.
type Options struct {
	// Write lets Put of the blob view add rows to the file. Without it the file
	// cannot be changed.
	Write bool
	// Rescue reads what can be read of a truncated file, instead of refusing it.
	// Damage is reported where it is met.
	Rescue bool
	// BusyTimeout is how long to wait for a lock of another process; 5 seconds if
	// zero.
	BusyTimeout time.Duration
	// MaxValue is the largest value that is read, in bytes; 256 MiB if zero. A
	// larger one is an error that wraps blob.ErrTooLarge.
	MaxValue int
}

func (o Options) busyTimeout() time.Duration {
	if o.BusyTimeout > 0 {
		return o.BusyTimeout
	}
	return 5 * time.Second
}

// maxValue leaves room for the record around the value.
func (o Options) maxValue() int {
	if o.MaxValue > 0 {
		return o.MaxValue + 1024
	}
	return 256<<20 + 1024
}
