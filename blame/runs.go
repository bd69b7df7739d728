package blame

import "context"

// Run is a run of adjacent lines that came from the same place: they have the same origin
// and the same call, and were adjacent there, too.
type Run struct {
	// Line is the number of the first line, and Then its number in the version that it
	// began with, both from 1. Lines is how many there are.
	Line, Then, Lines int
	// Origin is the index of their origin in File.Origins.
	Origin int
	// Call is the call that wrote them; nil if unknown.
	Call *Call
}

// Told is a file with the words of its origins.
type Told struct {
	*File
	// Runs cover all lines, in order.
	Runs []Run
	// Words are the words of the origins, by index.
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
