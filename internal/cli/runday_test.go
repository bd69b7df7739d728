package cli

import (
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// Runs of a day share a conversation with those of their own workspace, agent and store
// only. Another machine may have the same path: its runs must not meet these under one id.
func TestRunsOfADay(t *testing.T) {
	day := time.Date(2026, 3, 5, 9, 0, 0, 0, time.UTC)
	alone := conversation.Info{Title: "make", Agent: "make", Workspace: "/home/me/shop"}
	open := func() *conversation.Store {
		db, err := stet.Open(t.Context(), t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db.Conversations()
	}
	here, there := open(), open()
	of := func(store *conversation.Store, agent string, day time.Time, turns ...checkpoint.Turn) string {
		t.Helper()
		info, err := dayOfRuns(t.Context(), store, alone, agent, day, turns)
		if err != nil {
			t.Fatal(err)
		}
		if info.ID != "" {
			if _, _, err := openOrCreate(t.Context(), store, info); err != nil {
				t.Fatal(err)
			}
		}
		return info.ID
	}
	first := of(here, "", day)
	if again := of(here, "", day.Add(time.Hour)); again != first {
		t.Errorf("the second run is in %s, the first in %s", again, first)
	}
	for name, id := range map[string]string{
		"another store": of(there, "", day),
		"another agent": of(here, "builder", day),
		"another day":   of(here, "", day.AddDate(0, 0, 1)),
		"a run beside":  of(here, "", day, checkpoint.Turn{Conversation: first}),
	} {
		if id == first {
			t.Errorf("%s shares the conversation", name)
		}
	}
}

// What was not created is not there to be removed.
func TestNothingIsMadeOfABadConversation(t *testing.T) {
	inWorkspace(t, func(a *app, p *place) {
		s, err := a.supervise(t.Context(), p, runOptions{agent: "a\xff"}, []string{"touch", "proof"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.begin(t.Context()); err == nil || s.made || s.conv != nil {
			t.Errorf("begin: %v, made %t", err, s.made)
		}
	})
}
