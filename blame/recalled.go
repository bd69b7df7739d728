package blame

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/internal/recall"
	"github.com/stet-dev/stet/linediff"
	"github.com/stet-dev/stet/workspace"
)

// Reading a file with many versions compares all of them. The next reader, possibly in another
// process, starts from the results of the last one.
const (
	// manyVersions is how many versions make that worthwhile: each takes some 300 µs.
	manyVersions = 32
	// marks is roughly how many versions are remembered besides the newest ones: a
	// rewind goes back to an earlier one.
	marks = 16
	// traceRules is raised with every change of what Trace or linediff.Edits returns.
	traceRules = 1
)

// places traces the last version.
func (r *Reader) places(ctx context.Context, ws, path string, versions []checkpoint.Version) ([]Place, error) {
	steps := r.steps(ctx, versions)
	if len(steps) < r.many {
		return Trace(ctx, steps)
	}
	name := "lines\x00" + path
	keys := versionKeys(versions, steps)
	t := newTracer(ctx, steps)
	recallPlaces(r.checkpoints.Recall(ws, name), keys, t.known)
	known := len(t.known)
	places, err := t.places(len(steps) - 1)
	if err == nil && len(t.known)-known >= r.many {
		r.checkpoints.Remember(ws, name, encodePlaces(t.known, t.chain(len(steps)-1), keys, 2*r.many))
	}
	return places, err
}

// versionKeys returns, for each version, a hash of everything that the origins of its lines
// depend on: the checkpoint, the path, the content, and the keys of the versions that it comes
// from.
func versionKeys(versions []checkpoint.Version, steps []Step) []blob.ID {
	keys := make([]blob.ID, len(versions))
	var buf []byte
	for i := range versions {
		v := &versions[i]
		buf = append(buf[:0], traceRules)
		buf = appendText(buf, v.At.ID)
		buf = appendText(buf, v.Path)
		buf = appendEntry(buf, v.Entry)
		for _, from := range steps[i].From { // earlier ones
			buf = append(buf, keys[from][:]...)
		}
		keys[i] = sha256.Sum256(buf)
	}
	return keys
}

func appendText(buf []byte, text string) []byte {
	return append(binary.AppendUvarint(buf, uint64(len(text))), text...)
}

func appendEntry(buf []byte, e *workspace.Entry) []byte {
	if e == nil {
		return append(buf, 0)
	}
	chunked := byte(0)
	if e.Chunked {
		chunked = 1
	}
	buf = append(buf, byte(e.Kind), chunked)
	buf = binary.AppendUvarint(buf, uint64(e.Size))
	return append(buf, e.ID[:]...)
}

// chain returns a version and its chain of first sources, oldest first.
func (t *tracer) chain(version int) []int {
	n := 1
	for v := version; len(t.steps[v].From) > 0; v = t.steps[v].From[0] {
		n++
	}
	out := make([]int, n)
	for v := version; ; v = t.steps[v].From[0] {
		n--
		if out[n] = v; n == 0 {
			return out
		}
	}
}

// encodePlaces writes the places of some versions of a chain: the last two, and those that are a
// multiple of a power of two away from the first, so that they stay the same while it grows.
//
//	number of keys, the keys of the versions that lines began with or that are traced;
//	for each version: index of its key, number of lines, and for each run of lines that were
//	beside each other: index of the key, the number of the first line there, and how many
//
// Numbers are uvarints.
func encodePlaces(known map[int][]Place, chain []int, keys []blob.ID, every int) []byte {
	for every*marks < len(chain) {
		every *= 2
	}
	var body []byte
	var used []int
	index := make(map[int]uint64)
	number := func(version int32) uint64 {
		n, ok := index[int(version)]
		if !ok {
			n = uint64(len(used))
			index[int(version)] = n
			used = append(used, int(version))
		}
		return n
	}
	for i, v := range chain {
		places, ok := known[v]
		if !ok || i%every != 0 && i < len(chain)-2 {
			continue
		}
		body = binary.AppendUvarint(body, number(int32(v)))
		body = binary.AppendUvarint(body, uint64(len(places)))
		for len(places) > 0 {
			n := 1
			for n < len(places) && places[n] == (Place{places[0].Version, places[0].Line + int32(n)}) {
				n++
			}
			body = binary.AppendUvarint(body, number(places[0].Version))
			body = binary.AppendUvarint(body, uint64(places[0].Line))
			body = binary.AppendUvarint(body, uint64(n))
			places = places[n:]
		}
	}
	out := binary.AppendUvarint(nil, uint64(len(used)))
	for _, v := range used {
		out = append(out, keys[v][:]...)
	}
	return append(out, body...)
}

// recallPlaces adds the places of versions that encodePlaces wrote and that still exist.
func recallPlaces(data []byte, keys []blob.ID, known map[int][]Place) {
	r := recall.Read(data)
	index := make(map[blob.ID]int32, len(keys))
	for i, key := range keys {
		index[key] = int32(i)
	}
	versions := make([]int32, r.Count(blob.IDSize)) // none for one that no longer exists
	for i := range versions {
		versions[i] = none
		if v, ok := index[blob.ID(r.Bytes(blob.IDSize))]; ok {
			versions[i] = v
		}
	}
	for r.Len() > 0 {
		version := readVersion(r, versions)
		left := r.Number()
		var places []Place
		for left > 0 && r.Len() > 0 {
			from, line, n := readVersion(r, versions), int32(r.Number()), r.Number()
			if n == 0 || n > left || from == none || left > linediff.MaxFile {
				version = none // its key would be another one
				n = max(1, min(n, left))
			}
			left -= n
			if version == none {
				continue
			}
			for i := range int32(n) {
				places = append(places, Place{from, line + i})
			}
		}
		if version != none && left == 0 && !r.Bad() {
			known[int(version)] = places
		}
	}
}

// readVersion reads an index into versions and returns the version.
func readVersion(r *recall.Reader, versions []int32) int32 {
	if n := r.Number(); n < uint64(len(versions)) {
		return versions[n]
	}
	return none
}
