package blame

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
)

// chainOfSteps makes versions that differ in a few lines, some of which are alike.
func chainOfSteps(versions int) []Step {
	rnd := rand.New(rand.NewPCG(5, 6))
	var lines [][]byte
	line := func() []byte { return fmt.Appendf(nil, "line %d\n", rnd.IntN(300)) }
	for range 100 {
		lines = append(lines, line())
	}
	steps := make([]Step, versions)
	for i := range steps {
		for range 3 {
			switch at := rnd.IntN(len(lines)); rnd.IntN(3) {
			case 0:
				lines = append(lines[:at:at], lines[at+1:]...)
			case 1:
				lines = append(lines[:at:at], append([][]byte{line(), line()}, lines[at:]...)...)
			default:
				lines = append(lines[:at:at], append([][]byte{line()}, lines[at+1:]...)...)
			}
		}
		text := bytes.Join(lines, nil)
		steps[i].Text = func() ([]byte, error) { return text, nil }
		if i > 0 {
			steps[i].From = []int{i - 1}
		}
		if i > 50 && i%40 == 0 { // a rewind that merged
			steps[i].From = []int{i - 50, i - 1}
		}
	}
	return steps
}

// TestTraceRules fails when Trace returns something else than before for the same texts. What
// earlier releases remembered is then not valid: raise traceRules, and set the sum.
func TestTraceRules(t *testing.T) {
	places, err := Trace(t.Context(), chainOfSteps(120))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(fmt.Append(nil, traceRules, places))
	if got, want := hex.EncodeToString(sum[:8]), "81694a825b428775"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPlacesAreRecalled(t *testing.T) {
	steps := chainOfSteps(150)
	versions := make([]checkpoint.Version, len(steps))
	for i := range versions {
		versions[i] = checkpoint.Version{At: &checkpoint.Record{ID: fmt.Sprint(i)}, Path: "a"}
	}
	keys := versionKeys(versions, steps)
	all := newTracer(t.Context(), steps)
	if _, err := all.places(len(steps) - 1); err != nil {
		t.Fatal(err)
	}
	last := len(steps) - 1
	data := encodePlaces(all.known, all.chain(last), keys, 8)
	recalled := make(map[int][]Place)
	recallPlaces(data, keys, recalled)
	if len(recalled) < 5 || len(recalled) > marks+3 || recalled[last] == nil {
		t.Fatalf("%d versions are recalled", len(recalled))
	}
	for v, places := range recalled {
		if !slices.Equal(places, all.known[v]) {
			t.Errorf("version %d: got %v, want %v", v, places, all.known[v])
		}
	}

	// Another content of a version is another version, and so are those after it.
	const changed = 60
	versions[changed].At = &checkpoint.Record{ID: "another"}
	after := make(map[int][]Place)
	recallPlaces(data, versionKeys(versions, steps), after)
	for v := range recalled {
		if _, ok := after[v]; ok != (v < changed) {
			t.Errorf("version %d of a changed history: recalled %v", v, ok)
		}
	}

	for n := 0; n < len(data); n += 1 + n/50 { // cut anywhere, there is less, and nothing else
		part := make(map[int][]Place)
		recallPlaces(data[:n], keys, part)
		for v, places := range part {
			if len(part) >= len(recalled) || !slices.Equal(places, all.known[v]) {
				t.Fatalf("%d bytes: version %d is recalled as %v", n, v, places)
			}
		}
	}
	recallPlaces(bytes.Repeat([]byte{0xff}, 100), []blob.ID{{}}, recalled)
}
