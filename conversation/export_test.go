package conversation

// SetFew makes lists of more than n conversations walk through the list of all.
func SetFew(n int) (restore func()) {
	before := few
	few = n
	return func() { few = before }
}

// FiltersKey is the row with the salt.
var FiltersKey = filtersKey
