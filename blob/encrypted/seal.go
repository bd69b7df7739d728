package encrypted

import (
	"errors"
	"fmt"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/keyring"
)

// sealer starts an envelope for a content of n bytes under the active key.
func (s *Store) sealer(base, name blob.ID, n int64) (*box, header, error) {
	suite := byte(suiteWhole)
	if n > segmentSize {
		suite = suiteSegments
	}
	key, err := s.ring.Active()
	if err != nil {
		return nil, header{}, err
	}
	h := newHeader(suite, base, key.ID())
	if n/int64(h.segment) >= maxSegments {
		return nil, header{}, fmt.Errorf("%w: %d bytes", blob.ErrTooLarge, n)
	}
	b, err := newBox(key, &h, s.opts.Tenant, name)
	return b, h, err
}

// sealWhole returns the envelope of a content that is in memory.
func (s *Store) sealWhole(id, base, name blob.ID, content []byte) ([]byte, error) {
	b, h, err := s.sealer(base, name, int64(len(content)))
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, h.storedSize(int64(len(content))))
	out = b.appendHead(out, &h, id, base)
	for counter := uint32(bodyCounter); ; counter++ {
		n := min(len(content), h.segment)
		last := n == len(content)
		out = b.seal(out, content[:n], counter, last)
		if last {
			return out, nil
		}
		content = content[n:]
	}
}

// opener finds the key of an envelope and checks its head. If id is zero, it is taken
// from the head and checked against the name.
func (s *Store) opener(id, name blob.ID, data []byte) (*opened, error) {
	o, err := s.openHead(name, data)
	if err != nil {
		return nil, err
	}
	if id.IsZero() && s.sealedName(o.id) != name || !id.IsZero() && o.id != id {
		return nil, fmt.Errorf("%w: content and name belong to different blobs", errDamaged)
	}
	return o, nil
}

// opened is an envelope whose head is verified.
type opened struct {
	header
	box      *box
	id, base blob.ID
}

func (s *Store) openHead(name blob.ID, data []byte) (*opened, error) {
	h, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	key, err := s.key(h.key)
	if err != nil {
		return nil, err
	}
	o := &opened{header: h}
	if o.box, err = newBox(key, &h, s.opts.Tenant, name); err != nil {
		return nil, err
	}
	o.id, o.base, err = o.box.openHead(&h, data)
	return o, err
}

func (s *Store) key(id keyring.KeyID) (keyring.Key, error) {
	key, err := s.ring.Key(id)
	if errors.Is(err, keyring.ErrUnknownKey) {
		return key, fmt.Errorf("%w: sealed with key %s: %w", blob.ErrWrongKey, id, err)
	}
	return key, err
}

// openWhole decrypts an envelope in place; the result lies within data.
func (s *Store) openWhole(id, name blob.ID, data []byte) ([]byte, error) {
	o, err := s.opener(id, name, data)
	if err != nil {
		return nil, blame(id, err)
	}
	content, err := o.openBody(data[o.headSize():])
	return content, blame(id, err)
}

func (o *opened) openBody(body []byte) ([]byte, error) {
	sealed := o.segment + tagSize
	n := 0 // content so far, compacted at the start of body
	for at, counter := 0, uint32(bodyCounter); ; counter++ {
		end := min(at+sealed, len(body))
		last := end == len(body)
		part, err := o.box.open(body[at:end:end], counter, last)
		if err != nil {
			return nil, err
		}
		if n != at {
			copy(body[n:], part)
		}
		n += len(part)
		at = end
		if last {
			return body[:n:n], nil
		}
		if counter == maxSegments {
			return nil, fmt.Errorf("%w: too many parts", errDamaged)
		}
	}
}

// blame adds the blob to an error.
func blame(id blob.ID, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errDamaged):
		return blob.Corrupt(id, "%v", err)
	default:
		return fmt.Errorf("open sealed blob %s: %w", id, err)
	}
}
