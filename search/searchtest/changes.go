package searchtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/conversation"
)

// testRandomChangesAreFollowed changes conversations in every way, updates now and then,
// and compares the index with a new one.
func testRandomChangesAreFollowed(t *testing.T, open Open) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &changer{fixture: newFixture(t, open)}
		c.other = newFixture(t, open)
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) { c.save(t, c.name(), Turn(t, c.text())) },
			"save":   func(rt *rapid.T) { Add(t, c.opened(t, rt), Turn(t, c.text(), Say(c.text()))) },
			"rename": func(rt *rapid.T) { Check(t, c.SetTitle(t.Context(), c.any(rt), c.text())) },
			"delete": func(rt *rapid.T) {
				id := c.any(rt)
				Check(t, c.Delete(t.Context(), id, nil))
				c.ids = slices.DeleteFunc(c.ids, func(s string) bool { return s == id })
			},
			"fork": func(rt *rapid.T) {
				_, err := c.Fork(t.Context(), c.any(rt), 0, conversation.Info{ID: c.name()})
				Check(t, err)
			},
			"rewind": func(rt *rapid.T) {
				_, err := c.opened(t, rt).Rewind(t.Context(), 1, nil)
				if !errors.Is(err, conversation.ErrNotFound) { // retention removed it
					Check(t, err)
				}
			},
			"retention": func(rt *rapid.T) {
				saves, err := c.Retainable(t.Context(), nil)
				Check(t, err)
				_, err = c.ApplyRetention(t.Context(), conversation.PlanRetention(saves, conversation.Policy{MaxSaves: 1}, c.clock))
				Check(t, err)
			},
			"import": func(rt *rapid.T) { c.receive(t) },
			"update": func(rt *rapid.T) { c.update(t) },
		})
		c.update(t)
		if stats := c.update(t); stats.Conversations+stats.Removed > 0 {
			rt.Errorf("a second update did %+v", stats)
		}
		c.rebuilt(t)
	})
}

// changer is a store that is changed at random.
type changer struct {
	*fixture
	other *fixture // where imports come from
	ids   []string
	made  int
}

func (c *changer) text() string {
	c.made++
	return fmt.Sprint("word", c.made)
}

func (c *changer) name() string {
	c.made++
	c.ids = append(c.ids, fmt.Sprint("c:", c.made))
	return c.ids[len(c.ids)-1]
}

func (c *changer) any(rt *rapid.T) string {
	if len(c.ids) == 0 {
		rt.Skip("no conversation")
	}
	return rapid.SampledFrom(c.ids).Draw(rt, "which")
}

func (c *changer) opened(t testing.TB, rt *rapid.T) *conversation.Conversation {
	t.Helper()
	opened, err := c.Open(t.Context(), c.any(rt))
	Check(t, err)
	return opened
}

// receive imports a conversation whose time is that of another clock, and continues it.
func (c *changer) receive(t testing.TB) {
	t.Helper()
	made, err := c.other.Create(t.Context(), conversation.Info{ID: c.name(), Title: c.text()})
	Check(t, err)
	records, err := c.other.Records(t.Context(), made.ID())
	Check(t, err)
	r := c.Receive(&conversation.Records{ID: made.ID()}, nil)
	Check(t, r.Create(t.Context(), records.Conversation))
	got, err := c.Open(t.Context(), made.ID())
	Check(t, err)
	Add(t, got, Turn(t, c.text()))
}
