package upkeep

import (
	"slices"
	"testing"

	"github.com/stet-dev/stet/internal/keyspace"
)

func TestRowPartsHoldEachKeyOnce(t *testing.T) {
	parts := rowParts(keyspace.Quarantine())
	if !slices.Contains(parts, keyspace.Quarantine()) {
		t.Errorf("the range of rows that were set aside is not one of %q", parts)
	}
	if first, last := parts[0], parts[len(parts)-1]; first.Start != "" || last.End != "" {
		t.Errorf("they begin at %q and end at %q", first.Start, last.End)
	}
	for i, in := range parts[:len(parts)-1] {
		if next := parts[i+1]; in.End == "" || in.Empty() || in.End != next.Start {
			t.Errorf("%q is followed by %q", in, next)
		}
	}
}
