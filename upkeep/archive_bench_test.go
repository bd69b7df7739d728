package upkeep_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/pack"
	"github.com/stet-dev/stet/sqlite"
	"github.com/stet-dev/stet/upkeep"
)

// openPacked returns an embedded store with a bucket in a directory, or without.
func openPacked(b *testing.B, bucket bool) (*stet.DB, stet.Backend) {
	b.Helper()
	engine, err := sqlite.Open(b.Context(), b.TempDir(), nil)
	must(b, err)
	back := stet.Backend{Blobs: engine.Blobs(), Rows: engine.Rows(), Inventory: engine.Blobs(), Rewriter: engine.Blobs(), Arrivals: engine.Blobs(), Close: engine.Close}
	if bucket {
		back.Objects = pack.NewDir(b.TempDir())
	}
	db, err := stet.New(b.Context(), back, nil, nil)
	must(b, err)
	b.Cleanup(func() { must(b, db.Close()) })
	return db, back
}

// say appends a turn with the usual parts: a question, an answer, a tool call.
func say(b *testing.B, c *conversation.Conversation, n int) {
	b.Helper()
	turn, err := conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprintf("question %d %s", n, strings.Repeat("why? ", 40)), MessageId: fmt.Sprint("m", n)})
	must(b, err)
	must(b, c.AppendTurn(b.Context(), turn))
	for _, text := range []string{"I will have a look.", "func main() {}\n", "It was this."} {
		must(b, c.AppendStep(b.Context(), &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
			AssistantMessage: &agentv1.AssistantMessage{Text: fmt.Sprint(n, strings.Repeat(text, 50))},
		}}))
	}
	_, err = c.Save(b.Context(), &conversation.SaveOptions{MessageID: fmt.Sprint("m", n)})
	must(b, err)
}

// cost counts what a database holds.
func cost(b *testing.B, back stet.Backend) (rows, blobs int, bytes int64) {
	b.Helper()
	for row, err := range back.Rows.Scan(b.Context(), kv.Range{}, kv.ScanOptions{}) {
		must(b, err)
		rows++
		bytes += int64(len(row.Key) + len(row.Value))
	}
	must(b, back.Inventory.List(b.Context(), blob.ID{}, func(i blob.Info) error {
		blobs++
		bytes += i.Stored
		return nil
	}))
	return rows, blobs, bytes
}

// BenchmarkArchive measures what conversations of 100 turns cost in the database
// before and after they are archived, and how long archiving takes.
func BenchmarkArchive(b *testing.B) {
	db, back := openPacked(b, true)
	for i := range b.N {
		c, err := db.Conversations().Create(b.Context(), conversation.Info{ID: fmt.Sprintf("c%06d", i)})
		must(b, err)
		for n := range 100 {
			say(b, c, i*100+n)
		}
	}
	must(b, db.Compact(b.Context(), nil))
	n := float64(b.N)
	report := func(when string) func() {
		rows, blobs, bytes := cost(b, back)
		return func() { // resetting the timer would take them away
			b.ReportMetric(float64(rows)/n, "rows-"+when+"/conv")
			b.ReportMetric(float64(blobs)/n, "blobs-"+when+"/conv")
			b.ReportMetric(float64(bytes)/n, "bytes-"+when+"/conv")
		}
	}
	before := report("before")
	b.ResetTimer()
	start := time.Now()
	res, err := db.ArchiveIdle(b.Context(), &upkeep.ArchiveOptions{IdleFor: -1})
	must(b, err)
	b.StopTimer()
	b.ReportMetric(float64(time.Since(start).Microseconds())/1000/n, "ms-archive/conv")
	_, err = db.Collect(b.Context(), &upkeep.CollectOptions{Grace: -1})
	must(b, err)
	before()
	report("after")()
	b.ReportMetric(float64(res.Objects)/n, "objects/conv")
	b.ReportMetric(float64(res.Bytes)/n, "bucket-bytes/conv")
	start = time.Now()
	for i := range b.N {
		must(b, db.Unarchive(b.Context(), fmt.Sprintf("c%06d", i)))
	}
	b.ReportMetric(float64(time.Since(start).Microseconds())/1000/n, "ms-unarchive/conv")
}

// BenchmarkSaveBesidePacks measures what a store pays for having a bucket that it
// does not use.
func BenchmarkSaveBesidePacks(b *testing.B) {
	for name, bucket := range map[string]bool{"without": false, "with": true} {
		b.Run(name, func(b *testing.B) {
			db, _ := openPacked(b, bucket)
			c, err := db.Conversations().Create(b.Context(), conversation.Info{})
			must(b, err)
			b.ResetTimer()
			for i := range b.N {
				say(b, c, i)
			}
		})
	}
}
