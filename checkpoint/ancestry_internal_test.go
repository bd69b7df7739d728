package checkpoint

import (
	"math"
	"testing"
)

// lone is the ancestry of a conversation that is no fork.
func lone(conversation string) ancestry {
	if conversation == "" {
		return nil
	}
	return ancestry{{conversation, math.MaxUint64}}
}

func TestTurnsOfAnAncestry(t *testing.T) {
	a := append(lone("c"), Origin{"b", 2}, Origin{"a", 1})
	for _, tt := range []struct {
		by   Writer
		want bool
	}{
		{Writer{Class: ByConversation, Conversation: "c", Turn: 7}, true},
		{Writer{Class: ByConversation, Conversation: "c"}, true},
		{Writer{Class: ByConversation, Conversation: "b", Turn: 2}, true},
		{Writer{Class: ByConversation, Conversation: "b", Turn: 3}, false},
		{Writer{Class: ByConversation, Conversation: "b"}, false},
		{Writer{Class: ByConversation, Conversation: "a", Turn: 2}, false},
		{Writer{Class: ByConversation, Conversation: "d", Turn: 1}, false},
		{Writer{Class: BySeveral, Among: []string{"a", "c"}}, true},
		{Writer{Class: BySeveral, Among: []string{"a", "c"}, turns: Turns{{Conversation: "a", Number: 1}, {Conversation: "c", Number: 2}}}, true},
		{Writer{Class: BySeveral, Among: []string{"a", "c"}, turns: Turns{{Conversation: "a", Number: 2}, {Conversation: "c", Number: 2}}}, false},
		{Writer{Class: BySeveral, Among: []string{"c", "d"}}, false},
		{Writer{Class: BySeveral}, false},
		{Writer{Class: ByUser}, false},
	} {
		if got := mine(a, tt.by); got != tt.want {
			t.Errorf("a change of %+v is the conversation's: %v", tt.by, got)
		}
	}
	for _, tt := range []struct {
		rec  Record
		want bool
	}{
		{Record{Conversation: "b", Turn: 3, Side: Before}, true}, // after turn 2
		{Record{Conversation: "b", Turn: 3}, false},
		{Record{Conversation: "b", Turn: 2, Side: After}, true},
		{Record{Conversation: "a", Turn: 1, Side: Before}, true},
		{Record{Conversation: "b"}, false}, // at no turn
		{Record{Conversation: "c"}, true},
		{Record{}, false},
	} {
		if got := a.holds(&tt.rec); got != tt.want {
			t.Errorf("the conversation was at %s of %s: %v", tt.rec.Place(), tt.rec.Conversation, got)
		}
	}
}
