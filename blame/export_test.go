package blame

// ReadTogether sets how many versions are read at once, so that short histories have several
// parts.
func (r *Reader) ReadTogether(n int) { r.ahead = n }
