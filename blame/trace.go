package blame

import (
	"context"
	"slices"

	"github.com/stet-dev/stet/linediff"
)

// Step is one version of a file for Trace.
type Step struct {
	// Text returns the content. It is called only for versions that matter, sometimes
	// more than once.
	Text func() ([]byte, error)
	// From lists the earlier versions, by index, that the lines of this one may come
	// from, in the order in which they are searched. A line that none of them has began
	// here.
	From []int
}

// Place is a line of a version: the index of the version, and the number of the line in it,
// from 0.
type Place struct{ Version, Line int32 }

// Trace returns where each line of the last version began. It depends only on its
// arguments: a line that is the same, in the sense of linediff.Edits, in a version
// and in one that it comes from began where it did in the other one. A done context
// ends it.
func Trace(ctx context.Context, steps []Step) ([]Place, error) {
	return newTracer(ctx, steps).places(len(steps) - 1)
}

// tracer remembers what it found.
type tracer struct {
	ctx   context.Context // of the call that it is made for
	steps []Step
	known map[int][]Place
	texts [recent]recentText
	next  int
}

// recent is how many texts are kept. Neighbours are compared with each other.
const recent = 4

type recentText struct {
	version int
	text    []byte
	ok      bool
}

func newTracer(ctx context.Context, steps []Step) *tracer {
	return &tracer{ctx: ctx, steps: steps, known: make(map[int][]Place)}
}

func (t *tracer) text(version int) ([]byte, error) {
	for _, r := range t.texts {
		if r.ok && r.version == version {
			return r.text, nil
		}
	}
	text, err := t.steps[version].Text()
	if err != nil {
		return nil, err
	}
	t.texts[t.next%recent] = recentText{version, text, true}
	t.next++
	return text, nil
}

// places traces a version. Long histories are chains of versions, so the earlier ones
// are traced first to keep the recursion shallow.
func (t *tracer) places(version int) ([]Place, error) {
	if version < 0 {
		return nil, nil
	}
	var chain []int
	for v := version; ; {
		if _, ok := t.known[v]; ok {
			break
		}
		chain = append(chain, v)
		if len(t.steps[v].From) == 0 {
			break
		}
		v = t.steps[v].From[0]
	}
	for _, v := range slices.Backward(chain) {
		if err := t.trace(v); err != nil {
			return nil, err
		}
	}
	return t.known[version], nil
}

// trace finds the lines of a version whose first source is traced.
func (t *tracer) trace(version int) error {
	text, err := t.text(version)
	if err != nil {
		return err
	}
	var out []Place
	missing := -1 // lines without a source; -1 before the first one
	for _, from := range t.steps[version].From {
		places, err := t.places(from)
		if err != nil {
			return err
		}
		source, err := t.text(from)
		if err != nil {
			return err
		}
		edits, err := linediff.Edits(t.ctx, source, text)
		if err != nil {
			return err
		}
		if missing < 0 {
			out, missing = splice(places, edits)
		} else {
			missing -= fill(out, places, edits)
		}
		if missing == 0 {
			break
		}
	}
	if missing < 0 {
		out = make([]Place, len(linediff.Lines(text)))
		for i := range out {
			out[i].Version = none
		}
	}
	for i := range out {
		if out[i].Version == none {
			out[i] = Place{int32(version), int32(i)}
		}
	}
	t.known[version] = out
	return nil
}

// none is the version of a line that no source has so far.
const none = -1

// splice carries the places of a source over to a version. It returns how many lines the
// source does not have.
func splice(places []Place, edits []linediff.Edit) (out []Place, missing int) {
	out = make([]Place, 0, len(places)+16)
	at := 0
	for _, e := range edits {
		out = append(out, places[at:e.From]...)
		for range e.ToLen {
			out = append(out, Place{Version: none})
		}
		missing += e.ToLen
		at = e.From + e.FromLen
	}
	return append(out, places[at:]...), missing
}

// fill gives lines without a source their places in another source. It returns how
// many it found.
func fill(out, places []Place, edits []linediff.Edit) (found int) {
	from, to := 0, 0
	same := func(end int) { // lines up to the end in the version
		for ; to < end; from, to = from+1, to+1 {
			if out[to].Version == none {
				out[to] = places[from]
				found++
			}
		}
	}
	for _, e := range edits {
		same(e.To)
		from, to = e.From+e.FromLen, e.To+e.ToLen
	}
	same(len(out))
	return found
}
