package blame

import "context"

// Run is a number of lines beside each other that came from the same place: the same origin,
// the same call, and beside each other then.
type Run struct {
	// Line is the number of the first one, and Then its number in the version that it began
	// with, both from 1. Lines is how many there are.
	Line, Then, Lines int
	// Origin is the index of their origin in File.Origins.
	Origin int
	// Call wrote them; nil if it is not known.
	Call *Call
}

// Told is a file with the words of its origins.
type Told struct {
	*File
	// Runs are all lines, in their order.
	Runs []Run
	// Words are those of the origins, by index.
	Words []*Words
}

// Tell reads the words of all lines of a file.
func (r *Reader) Tell(ctx context.Context, f *File) (*Told, error) {
	teller := r.Teller()
	teller.Expect(f)
	told := &Told{File: f, Words: make([]*Words, len(f.Origins))}
	for i := range f.Origins {
		var err error
		if told.Words[i], err = teller.Words(ctx, &f.Origins[i]); err != nil {
			return nil, err
		}
	}
	for _, line := range f.Lines {
		call, err := teller.Call(ctx, told.Words[line.Origin], f.Origins[line.Origin].Path, line.Text)
		if err != nil {
			return nil, err
		}
		if n := len(told.Runs); n > 0 {
			if last := &told.Runs[n-1]; last.Origin == line.Origin && last.Then+last.Lines == line.Then && sameCall(last.Call, call) {
				last.Lines++
				continue
			}
		}
		told.Runs = append(told.Runs, Run{Line: line.Number, Then: line.Then, Lines: 1, Origin: line.Origin, Call: call})
	}
	return told, nil
}

// sameCall compares calls of one turn.
func sameCall(a, b *Call) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Number == b.Number
}
