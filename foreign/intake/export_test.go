package intake

// WithBatch makes commits of some bytes of turns.
func (m *Intake) WithBatch(bytes int) *Intake {
	m.batch = bytes
	return m
}
