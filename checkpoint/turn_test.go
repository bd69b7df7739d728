package checkpoint

import (
	"context"
	"testing"

	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
)

// After the conversation went back and the files stayed, the number of a turn is given
// again. It means the turn on the present line; the one that was left behind is another.
func TestOnlyTurnWhoseNumberIsGivenAgain(t *testing.T) {
	for name, begins := range map[string]bool{"with beginnings": true, "with ends only": false} {
		t.Run(name, func(t *testing.T) {
			f, store, _, _ := talk(t)
			say := func(n uint64, text string, pairs ...string) *Record {
				t.Helper()
				c, err := store.Open(t.Context(), "talk")
				must(t, err)
				if begins {
					f.save(Request{Conversation: "talk", Root: c.Head().Root, Turn: n, Side: Before})
				}
				turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: text, MessageId: text})
				must(t, err)
				f.write(pairs...)
				must(t, c.AppendTurn(t.Context(), turn))
				save, err := c.Save(t.Context(), nil)
				must(t, err)
				return f.save(Request{Conversation: "talk", Root: save.Root, Turn: n, Side: After})
			}
			out := func(what string, want ...string) {
				t.Helper()
				same(t, what, lines(f.plan(RewindRequest{OnlyTurn: 2, Conversation: "talk"})), want)
			}
			one := say(1, "one", "t1", "1\n")
			old := say(2, "two", "t2old", "2\n")
			f.rewind(RewindRequest{To: one.ID, Scope: ConversationOnly})
			out("the only one, left behind", "delete t2old")
			say(2, "two again", "t2new", "2\n")
			out("given again", "delete t2new")
			f.rewind(RewindRequest{To: old.ID, Scope: ConversationOnly})
			out("back in the branch", "delete t2old")
			must(t, undo(f))
			out("after the undo", "delete t2new")
			f.rewind(RewindRequest{OnlyTurn: 2, Conversation: "talk"})
			same(t, "files", f.files(), []string{"t1=1\n", "t2old=2\n"})
		})
	}
}

// Agents go back by themselves, too, and give a number again without a rewind.
func TestOnlyTurnWhoseNumberAnAgentGivesAgain(t *testing.T) {
	f := newFixture(t)
	turn := func(message, name string) {
		f.save(Request{Conversation: "c", Turn: 1, Side: Before, MessageID: message})
		f.write(name, "1\n")
		f.save(Request{Conversation: "c", Turn: 1, Side: After, MessageID: message})
	}
	turn("m1", "first")
	turn("m2", "second")
	same(t, "another message", lines(f.plan(RewindRequest{OnlyTurn: 1})), []string{"delete second"})
	turn("m2", "third") // tried again
	same(t, "the same message", lines(f.plan(RewindRequest{OnlyTurn: 1})), []string{"delete second", "delete third"})
}

// The undo of a rewind of one turn leaves nothing behind, not even of a turn at work.
func TestOnlyTurnThatGoesOnDuringAnUndo(t *testing.T) {
	f := newFixture(t)
	f.processes(1)
	f.before("c", 1)
	f.write("one", "x\n")
	f.after("c", 1)
	f.rewind(RewindRequest{OnlyTurn: 1, Conversation: "c"})
	turn := hold("c", 2, 1)
	f.save(turn.at(Before))
	f.write("early", "x\n")
	f.save(turn.at(NoSide))
	must(t, undo(f))
	f.write("late", "x\n")
	f.save(turn.at(After))
	same(t, "plan", lines(f.plan(RewindRequest{OnlyTurn: 2, Conversation: "c"})), []string{"delete early", "delete late"})
}

// What may be the turn's is named although nobody saw the turn begin.
func TestOnlyTurnOfAConversationBeside(t *testing.T) {
	f := newFixture(t)
	f.write("f", "0\n", "own", "0\n")
	f.before("B", 1)
	f.write("own", "A\n")
	f.save(Request{Conversation: "A", Turn: 3, Touched: []string{"own"}, Paths: []string{"own"}})
	f.write("f", "A or B\n")
	f.save(Request{Conversation: "B", Turn: 1, Side: After, Beside: func(context.Context) ([]string, error) { return []string{"A"}, nil }})
	p := f.plan(RewindRequest{OnlyTurn: 3, Conversation: "A"})
	same(t, "plan", lines(p), []string{"keep f", "restore own"})
	same(t, "left", leftPaths(p), []string{"f"})
}

// The same for two turns of one conversation that are at work at once.
func TestOnlyTurnOfTwoAtOnce(t *testing.T) {
	f := newFixture(t)
	f.processes(1, 2)
	f.write("f", "0\n")
	one, two := hold("c", 1, 1), hold("c", 2, 2)
	f.save(one.at(Before))
	f.save(two.at(Before))
	f.write("f", "1 or 2\n")
	f.save(two.at(After))
	f.save(one.at(After))
	same(t, "left", leftPaths(f.plan(RewindRequest{OnlyTurn: 2, Conversation: "c"})), []string{"f"})
}

// The same for a change that a forgotten checkpoint of the turn saw. Changes after the turn
// are not named.
func TestOnlyTurnWithAForgottenCheckpoint(t *testing.T) {
	f := newFixture(t)
	f.write("f", "0\n", "g", "0\n")
	f.before("c", 1)
	f.write("f", "1\n")
	middle := f.save(Request{Conversation: "c", Turn: 1})
	f.after("c", 1)
	f.write("g", "1\n")
	later := f.save(Request{})
	f.save(Request{Label: "the last"})
	must(t, f.dropCheckpoint(middle.ID))
	must(t, f.dropCheckpoint(later.ID))
	same(t, "left", leftPaths(f.plan(RewindRequest{OnlyTurn: 1, Conversation: "c"})), []string{"f"})
}
