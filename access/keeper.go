package access

import "time"

// Keeper holds the tokens of several servers in one place, such as a row of the
// database that they share. Content and format are those of the file.
type Keeper interface {
	// Load returns the content, nil where there is none yet, and a stamp that is
	// another one when the content is. It may be a little old; who keeps it says how
	// much.
	Load() (content []byte, stamp string, err error)
	// Change replaces the content by what do makes of it, all or nothing. It calls
	// do again where others were faster, and Load of this Keeper gives the new
	// content afterwards.
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
