package lookup

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

func rowsOf(t *testing.T, ids ...string) kv.Store {
	t.Helper()
	rows := memkv.New(nil)
	b := &kv.Batch{Set: []kv.Set{{Key: keyspace.ByTime(1, "01AAAA")}}} // of another kind
	for _, id := range ids {
		b.Set = append(b.Set, kv.Set{Key: keyspace.Conversation(id), Value: []byte("x")})
	}
	if err := rows.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestFind(t *testing.T) {
	rows := rowsOf(t, "01AAAA", "01AAAB", "01B", "01BC", "talk:1", "talk%2", "Talk")
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"01AAAA", "01AAAA", nil},
		{"01AAAB", "01AAAB", nil},
		{"01aaab", "01AAAB", nil},
		{"01B", "01B", nil}, // the id itself, although another begins with it
		{"01BC", "01BC", nil},
		{"01A", "", ErrAmbiguous},
		{"talk:", "talk:1", nil},
		{"talk%", "talk%2", nil},
		{"Ta", "Talk", nil},
		{"talk", "", ErrAmbiguous},
		{"2", "", ErrNone},
		{"", "", ErrNone},
	} {
		got, err := Find(t.Context(), rows, keyspace.Conversation, c.name)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("find %q: %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
	below := rowsOf(t, "sess-one", "sess-one/agent-a", "sess-one/agent-b", "sess-two/agent-c", "other", "other-1", "other/x")
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"sess-o", "sess-one", nil}, // only others below it begin so
		{"sess", "", ErrAmbiguous},
		{"oth", "", ErrAmbiguous},
		{"sess-one/", "", ErrAmbiguous},
		{"sess-o/agent-b", "sess-one/agent-b", nil},
		{"sess-o/agent", "", ErrAmbiguous},
		{"sess-t", "sess-two/agent-c", nil},
		{"sess-o/nothing", "", ErrNone},
		{"/agent-a", "", ErrNone},
	} {
		got, err := Find(t.Context(), below, keyspace.Conversation, c.name)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("find %q: %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
	var several *AmbiguousError
	_, err := Find(t.Context(), rows, keyspace.Conversation, "01A")
	if !errors.As(err, &several) || fmt.Sprint(several.Candidates) != "[01AAAA 01AAAB]" || several.More {
		t.Errorf("got %v", err)
	}
}

// What Short returns is found again, whatever else there is in the store.
func TestShortIsFoundAgain(t *testing.T) {
	ids := []string{"session-1", "session-1/agent-aa", "session-1/agent-ab", "session-1/agent-ab/x", "session-1-more", "session-2/agent-aa", "01M7J3M8AA", "01M7J3M8AB", "01M7J3M8", "01M7J3XX", "01", "é", "éa", "éé", "a:b:c:d", "a:b:c%d", "a%", "z"}
	for i := range many {
		ids = append(ids, fmt.Sprintf("01M7J3N%04d", i*3))
	}
	rows := rowsOf(t, ids...)
	for _, wanted := range [][]string{ids[:1], ids[:18], ids} { // few of many, and all
		short, err := Short(t.Context(), rows, keyspace.Conversation, keyspace.Conversations(), wanted, 6)
		if err != nil || len(short) != len(wanted) {
			t.Fatal(len(short), err)
		}
		for _, id := range wanted {
			got, err := Find(t.Context(), rows, keyspace.Conversation, short[id])
			if err != nil || got != id {
				t.Errorf("%q is printed as %q, which finds %q, %v", id, short[id], got, err)
			}
		}
	}
	few, err := Short(t.Context(), rowsOf(t, "11111111-1", "11111111-1/agent-abcdef", "2"), keyspace.Conversation, keyspace.Conversations(), []string{"11111111-1", "11111111-1/agent-abcdef"}, 6)
	if err != nil || few["11111111-1"] != "111111" || few["11111111-1/agent-abcdef"] != "111111/agent-" {
		t.Errorf("below another: %v, %v", few, err)
	}
	short, err := Short(t.Context(), rows, keyspace.Conversation, keyspace.Conversations(), []string{"01M7J3M8AA", "01M7J3XX"}, 6)
	if err != nil || short["01M7J3M8AA"] != "01M7J3M8AA" || short["01M7J3XX"] != "01M7J3X" {
		t.Errorf("got %v, %v", short, err)
	}
}
