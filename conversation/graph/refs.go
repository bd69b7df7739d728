package graph

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation/wirelimit"
	"github.com/stet-dev/stet/fault"
)

// MaxNested is the maximum nesting depth of messages of one type: states of subagents
// within subagents, steps of tasks within tasks. Nesting counts referenced states as
// well as embedded ones.
const MaxNested = 32

// ErrMalformed says that bytes do not match their kind, or name a blob by something that
// is not an id.
var ErrMalformed = fault.Named(fault.Invalid, "malformed-blob", "malformed blob")

// Ref is a blob that another one names.
type Ref struct {
	Kind Kind
	ID   blob.ID
	// Field is the path of field names to the reference, such as "turns" or
	// "selected_context.selected_images.blob_id".
	Field string
	// Nested is the nesting depth of a subagent's state relative to the outermost
	// state of the blob; 0 for everything else.
	Nested int
}

// Refs returns the references in a blob of the given kind, in byte order. Empty ids
// mean "none" and are skipped, unless the edge has Always. For malformed bytes it
// returns the references before the error, and an error that wraps ErrMalformed.
func Refs(kind Kind, data []byte) ([]Ref, error) {
	var refs []Ref
	err := each(kind, data, 0, func(r Ref) { refs = append(refs, r) })
	return refs, err
}

// each calls fn for the references of data that are at least partly after its first
// skip bytes.
func each(kind Kind, data []byte, skip int, fn func(Ref)) error {
	s := scanner{fn: fn, skip: skip, total: len(data)}
	return s.scan(kind, data)
}

func (s *scanner) scan(kind Kind, data []byte) error {
	if kind.Leaf() {
		return nil
	}
	err := s.message(data, shapes()[kind.Message()], "")
	return errors.Join(err, s.bad)
}

type scanner struct {
	fn     func(Ref)
	skip   int
	total  int
	path   []*shape // the messages around the current bytes
	nested int      // nesting depth of subagent states
	bad    error    // the first invalid id or too deep state
}

func (s *scanner) message(data []byte, sh *shape, prefix string) error {
	nested := s.around(sh.message)
	if nested > MaxNested {
		// Later references still count: a collector must not lose them.
		if s.bad == nil {
			s.bad = fmt.Errorf("%w: %s: %w", ErrMalformed, sh.message, tooDeep())
		}
		return nil
	}
	if sh.message == state {
		s.nested = max(s.nested, nested)
	}
	s.path = append(s.path, sh)
	defer func() { s.path = s.path[:len(s.path)-1] }()
	for len(data) > 0 {
		num, typ, value, rest, err := wirelimit.Next(data)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrMalformed, sh.message, err)
		}
		data = rest
		if len(s.path) == 1 && s.total-len(rest) <= s.skip {
			continue
		}
		e := sh.edges[num]
		if e == nil || typ != protowire.BytesType {
			continue
		}
		if err := s.field(e, value, prefix); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) field(e *resolved, value []byte, prefix string) error {
	if !e.Map {
		return s.value(e, value, prefix)
	}
	for entry := value; len(entry) > 0; {
		num, typ, v, rest, err := wirelimit.Next(entry)
		if err != nil {
			return fmt.Errorf("%w: %s.%s: %w", ErrMalformed, e.Message, e.Name, err)
		}
		if num == 2 && typ == protowire.BytesType {
			if err := s.value(e, v, prefix); err != nil {
				return err
			}
		}
		entry = rest
	}
	return nil
}

func (s *scanner) value(e *resolved, value []byte, prefix string) error {
	if e.into != nil {
		if prefix != "" { // at the top level no allocation is needed
			return s.message(value, e.into, prefix+e.dotted)
		}
		return s.message(value, e.into, e.dotted)
	}
	if len(value) == 0 && !e.Always {
		return nil
	}
	id, err := blob.IDFromBytes(value)
	if err != nil {
		// The other references still count: a collector must not lose them.
		if s.bad == nil {
			s.bad = fmt.Errorf("%w: %s%s: %w", ErrMalformed, prefix, e.Name, err)
		}
		return nil
	}
	r := Ref{Kind: e.Target, ID: id, Field: prefix + e.Name}
	if e.Message == state && e.Target == State {
		r.Nested = s.around(state)
	}
	s.fn(r)
	return nil
}

// around counts the messages of a type around the current bytes.
func (s *scanner) around(message string) (n int) {
	for _, p := range s.path {
		if p.message == message {
			n++
		}
	}
	return n
}
