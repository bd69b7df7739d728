package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/conversation"
	"github.com/stet-dev/stet/fleet"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/upkeep"
)

// BenchmarkArchivedCost measures what conversations of 100 turns cost in Postgres and
// in the bucket before and after they are archived.
func BenchmarkArchivedCost(b *testing.B) {
	f := node(b, backends(b, 15))
	db := open(b, f, "shop")
	for n := range b.N {
		if err := longTalk(b, db, fmt.Sprintf("c%06d", n), 100); err != nil {
			b.Fatal(err)
		}
	}
	before := costOf(b, f)
	b.ResetTimer()
	start := time.Now()
	result, err := db.ArchiveIdle(b.Context(), &upkeep.ArchiveOptions{IdleFor: -1})
	took := time.Since(start)
	b.StopTimer()
	if err != nil || result.Archived != b.N {
		b.Fatalf("%+v, %v", result, err)
	}
	if _, err := db.Collect(b.Context(), &upkeep.CollectOptions{Grace: -1}); err != nil {
		b.Fatal(err)
	}
	after, each := costOf(b, f), float64(b.N)
	for when, c := range map[string]cost{"before": before, "after": after} {
		b.ReportMetric(float64(c.rows)/each, "rows-"+when+"/conv")
		b.ReportMetric(float64(c.blobs)/each, "blobs-"+when+"/conv")
		b.ReportMetric(float64(c.bytes)/each, "db-bytes-"+when+"/conv")
	}
	b.ReportMetric(float64(before.bytes)/float64(after.bytes), "db-before/after")
	b.ReportMetric(float64(result.Objects)/each, "objects/conv")
	b.ReportMetric(float64(result.Bytes)/each, "bucket-bytes/conv")
	b.ReportMetric(float64(took.Microseconds())/1000/each, "ms-archive/conv")
}

func longTalk(b *testing.B, db *stet.DB, id string, turns int) error {
	c, err := db.Conversations().Create(b.Context(), conversation.Info{ID: id})
	for n := 0; n < turns && err == nil; n++ {
		var turn conversation.Turn
		turn, err = conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprintf("%s, question %d %s", id, n, strings.Repeat("why? ", 40))})
		if err == nil {
			err = c.AppendTurn(b.Context(), turn)
		}
		for step := 0; step < 3 && err == nil; step++ {
			err = c.AppendStep(b.Context(), &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
				AssistantMessage: &agentv1.AssistantMessage{Text: fmt.Sprint(id, n, step, strings.Repeat(" because of that", 60))},
			}})
		}
		if err == nil {
			_, err = c.Save(b.Context(), nil)
		}
	}
	return err
}

type cost struct{ rows, blobs, bytes int64 }

// costOf counts what the database holds, without what tables and indexes add.
func costOf(b *testing.B, f *fleet.Fleet) (c cost) {
	b.Helper()
	err := f.Postgres().Pool().QueryRow(b.Context(), `SELECT (SELECT count(*) FROM stet.rows), (SELECT count(*) FROM stet.blobs),
		(SELECT coalesce(sum(length(key) + length(value)), 0)::bigint FROM stet.rows) +
		(SELECT coalesce(sum(32 + coalesce(length(data), 0)), 0)::bigint FROM stet.blobs)`).Scan(&c.rows, &c.blobs, &c.bytes)
	if err != nil {
		b.Fatal(err)
	}
	return c
}
