package blame

// ReadTogether sets how many versions are read at once, so that short histories have several
// parts.
func (r *Reader) ReadTogether(n int) { r.ahead = n }

// RememberFrom sets how many versions are worth remembering.
func (r *Reader) RememberFrom(n int) { r.many = n }
