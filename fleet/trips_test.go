package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fleet"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/realservers"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/upkeep"
)

// TestRoundTrips counts how often a node waits for the database. At half a millisecond
// each, that is what an operator feels.
func TestRoundTrips(t *testing.T) {
	config := backends(t, 15)
	var trips *realservers.Trips
	config.Database, trips = realservers.CountTrips(t, config.Database)
	config.Postgres.PollInterval = time.Hour
	const connections = 16
	config.Postgres.MaxConns = connections
	f := node(t, config)
	db := open(t, f, "shop")
	ctx := t.Context()
	const turns = 12
	talks := testenv.Sizes(60, 60, 200)
	var saves []int64
	for n := range talks {
		c, err := db.Conversations().Create(ctx, conversation.Info{ID: fmt.Sprintf("talk %04d", n)})
		if err != nil {
			t.Fatal(err)
		}
		for k := range turns {
			turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprintf("question %d of %d", k, n)})
			if err != nil {
				t.Fatal(err)
			}
			saves = append(saves, trips.Of(func() {
				if err := c.AppendTurn(ctx, turn); err != nil {
					t.Fatal(err)
				}
				if _, err := c.Save(ctx, nil); err != nil {
					t.Fatal(err)
				}
			}))
		}
	}
	// Reads share a round trip if they wait at the same time, so a busy machine has more of
	// them. A check stays within its limits if nothing is shared at all (2.3 for each row,
	// 0.2 on an idle machine); archiving asks 87 questions and takes four or five trips.
	within := func(what string, got int64, each int, want float64) {
		t.Helper()
		per := float64(got) / float64(each)
		t.Logf("%s: %.2f round trips", what, per)
		if per > want {
			t.Errorf("%s takes %.2f round trips, want at most %v", what, per, want)
		}
	}
	var sum int64
	for _, n := range saves {
		sum += n
	}
	within("a save", sum, len(saves), 4)
	list := func() {
		page, err := db.Conversations().List(ctx, &conversation.ListOptions{Limit: 50})
		if err != nil || len(page.Conversations) != 50 {
			t.Fatalf("%d conversations, %v", len(page.Conversations), err)
		}
	}
	// Every connection prepares a statement when it first runs it, which is a round trip
	// of its own, so the fewest of more lists than there are connections count.
	fewest := func(do func()) int64 {
		least := trips.Of(do)
		for range 2 * connections {
			least = min(least, trips.Of(do))
		}
		return least
	}
	within("a page of 50 conversations", fewest(list), 1, 1)
	var rows int64
	check := func() {
		report, err := db.Check(ctx, nil)
		if err != nil || !report.OK() {
			t.Fatalf("%+v, %v", report, err)
		}
		rows = report.Rows
	}
	within("a check, for each row,", trips.Of(check), int(rows), 2.5)
	var archived int64
	statements := trips.Statements(func() {
		archived = trips.Of(func() {
			result, err := db.ArchiveIdle(ctx, &upkeep.ArchiveOptions{IdleFor: -1, Workers: fleet.ArchiveWorkers})
			if err != nil || result.Archived != talks {
				t.Fatalf("%+v, %v", result, err)
			}
		})
	})
	within("archiving a conversation", archived, talks, 40)
	t.Logf("archiving a conversation: %.2f statements", float64(statements)/float64(talks))
	list() // learns that there are archived ones
	within("a page of 50 archived conversations", fewest(list), 1, 1)
	check()
	within("a check of archived conversations, for each,", trips.Of(check), talks, 3)
}
