package keyspace

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIdentifiersThatDifferGiveKeysThatDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a1, a2 := rapid.String().Draw(t, "a1"), rapid.String().Draw(t, "a2")
		b1, b2 := rapid.String().Draw(t, "b1"), rapid.String().Draw(t, "b2")
		same := a1 == b1 && a2 == b2
		if got := MessageHead(a1, a2) == MessageHead(b1, b2); got != same {
			t.Fatalf("MessageHead(%q, %q) and MessageHead(%q, %q) equal: %v, want %v", a1, a2, b1, b2, got, same)
		}
	})
}

func TestPrefixCoversItsOwnOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conv, other := rapid.String().Draw(t, "conv"), rapid.String().Draw(t, "other")
		msg := rapid.String().Draw(t, "msg")
		if !MessageHeads(conv).Contains(MessageHead(conv, msg)) {
			t.Fatalf("the range of %q does not hold its message %q", conv, msg)
		}
		if conv != other && MessageHeads(conv).Contains(MessageHead(other, msg)) {
			t.Fatalf("the range of %q holds message %q of %q", conv, msg, other)
		}
	})
}

func TestColonInAnIdentifier(t *testing.T) {
	if MessageHead("a:b", "c") == MessageHead("a", "b:c") {
		t.Error("two pairs of ids that differ only by a colon give one key")
	}
	if JSONCheckpoints("a").Contains(JSONCheckpoint("a:b", "c")) {
		t.Error("clearing conversation a would clear a:b")
	}
}

func TestEscapeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.String().Draw(t, "id")
		escaped := Escape(id)
		if strings.ContainsAny(escaped, ":\x00") {
			t.Fatalf("Escape(%q) = %q", id, escaped)
		}
		if got := Unescape(escaped); got != id {
			t.Fatalf("Unescape(Escape(%q)) = %q", id, got)
		}
	})
}

func TestNumbersSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		if (a < b) != (Number(a) < Number(b)) {
			t.Fatalf("%d and %d sort otherwise as keys", a, b)
		}
		if got, err := ParseNumber(Number(a)); err != nil || got != a {
			t.Fatalf("ParseNumber(Number(%d)) = %d, %v", a, got, err)
		}
	})
	for _, bad := range []string{"", "1", "00000000000000zz", "000000000000000010"} {
		if _, err := ParseNumber(bad); err == nil {
			t.Errorf("ParseNumber(%q) gave no error", bad)
		}
	}
}
