package access

import "time"

// Keeper holds the tokens of several servers in one place, such as a row of the
// database that they share. Content and format are those of the file.
type Keeper interface {
	// Load returns the content, nil if there is none yet, and a stamp that changes
	// with the content. Both may be slightly out of date; the implementation
	// documents by how much.
	Load() (content []byte, stamp string, err error)
	// Change replaces the content by the result of do, all or nothing. It calls do
	// again if another writer was faster. Afterwards Load of this Keeper returns the
	// new content.
	Change(do func(old []byte) ([]byte, error)) error
}

// KeepTokens returns the tokens that a Keeper holds.
func KeepTokens(k Keeper) *Tokens { return &Tokens{keeper: k, now: time.Now} }

// keptLocked is current for a Keeper.
func (t *Tokens) keptLocked() (map[string]entry, error) {
	data, stamp, err := t.keeper.Load()
	if err != nil {
		return nil, err
	}
	if t.known != nil && stamp == t.stamp {
		return t.known, nil
	}
	f, err := parse(data)
	if err != nil {
		return nil, err
	}
	t.stamp, t.known = stamp, f.byID()
	return t.known, nil
}
