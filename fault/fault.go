package fault

import "slices"

// sentinel is an error that has a class.
type sentinel struct {
	class  Class
	reason string // "" where the wire need not distinguish it
	text   string
	parent error // what it is a kind of; may be nil
}

// New returns a sentinel of a class. Each call returns a distinct error, even if the
// text is the same.
func New(class Class, text string) error {
	return &sentinel{class: class, text: text}
}

// Named returns a sentinel of a class with a reason, which is how it is recognised
// on the other side of a wire. To errors.Is, sentinels with the same reason are the
// same error.
func Named(class Class, reason, text string) error {
	return &sentinel{class: class, reason: reason, text: text}
}

// Under returns a sentinel that is a kind of parent: it has the class of parent, and
// errors.Is matches both. The reason may be empty.
func Under(parent error, reason, text string) error {
	return &sentinel{class: Of(parent), reason: reason, text: text, parent: parent}
}

func (s *sentinel) Error() string { return s.text }

// Unwrap returns the parent of the sentinel.
func (s *sentinel) Unwrap() error { return s.parent }

// FaultClass returns the class.
func (s *sentinel) FaultClass() Class { return s.class }

// Is reports whether target has the same reason.
func (s *sentinel) Is(target error) bool {
	other, ok := target.(*sentinel)
	return ok && s.reason != "" && s.reason == other.reason
}

// classed is an error that reports its class. Error types can implement it, as sentinels
// do.
type classed interface{ FaultClass() Class }

// Of returns the class of an error: the most serious one in its tree of wrapped errors.
// Besides sentinels, and types with a method FaultClass() Class, it considers errors of
// the standard library whose meaning does not depend on where they occur: those of
// contexts, files and connections.
func Of(err error) Class {
	class := Unknown
	walk(err, func(e error) { class = max(class, declared(e), ofSystem(e)) })
	return class
}

// Declared is Of without the errors of the system. A server uses it: the text of a
// bare system error names paths and hosts, and is not meant for callers.
func Declared(err error) Class {
	class := Unknown
	walk(err, func(e error) { class = max(class, declared(e)) })
	return class
}

func declared(err error) Class {
	if c, ok := err.(classed); ok {
		return c.FaultClass()
	}
	return Unknown
}

// Reasons returns the reasons of all sentinels in the tree of an error, those of the
// most serious class first and each once.
func Reasons(err error) []string {
	var found []*sentinel
	walk(err, func(e error) {
		s, ok := e.(*sentinel)
		if ok && s.reason != "" && !slices.ContainsFunc(found, func(f *sentinel) bool { return f.reason == s.reason }) {
			found = append(found, s)
		}
	})
	slices.SortStableFunc(found, func(a, b *sentinel) int { return int(b.class) - int(a.class) })
	reasons := make([]string, len(found))
	for i, s := range found {
		reasons[i] = s.reason
	}
	return reasons
}

// walk calls fn for each error of a tree, the outer ones first.
func walk(err error, fn func(error)) {
	for err != nil {
		fn(err)
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				walk(inner, fn)
			}
			return
		default:
			return
		}
	}
}
