package transfer

import (
	"context"
	"fmt"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/memblob"
	"github.com/stet-dev/stet/conversation"
	agentv1 "github.com/stet-dev/stet/gen/agent/v1"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/kv/memkv"
)

// counted counts commits.
type counted struct {
	kv.Store
	commits int
}

func (c *counted) Commit(ctx context.Context, b *kv.Batch) error {
	c.commits++
	return c.Store.Commit(ctx, b)
}

// Many tiny saves arrive by few commits, with the same history.
func TestTinySavesShareCommits(t *testing.T) {
	ctx := t.Context()
	side := func() (Side, *counted) {
		mem := memblob.New()
		rows := &counted{Store: memkv.New(mem)}
		return Side{Blobs: blob.Checked(mem), Rows: rows}, rows
	}
	from, _ := side()
	to, rows := side()
	saves := testenv.Sizes(300, 1000, 5000)
	c, err := conversation.New(from.Blobs, from.Rows, nil).Create(ctx, conversation.Info{ID: "talk"})
	for n := 0; n < saves && err == nil; n++ {
		var turn conversation.Turn
		if turn, err = conversation.NewTurn(&agentv1.UserMessage{Text: fmt.Sprint("turn ", n)}); err == nil {
			err = c.AppendTurn(ctx, turn)
		}
		if err == nil {
			_, err = c.Save(ctx, &conversation.SaveOptions{MessageID: fmt.Sprint("m", n/2)}) // two saves of each message
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(ctx, from, to, []string{"talk"}, nil)
	if err != nil || len(report.Conversations) != 1 || report.Conversations[0].Saves != saves {
		t.Fatalf("%+v, %v", report, err)
	}
	if rows.commits > saves/20 {
		t.Errorf("%d saves took %d commits", saves, rows.commits)
	}
	here, err := service(from).Records(ctx, "talk")
	if err != nil {
		t.Fatal(err)
	}
	there, err := service(to).Records(ctx, "talk")
	if err != nil || len(there.Saves) != len(here.Saves) {
		t.Fatalf("%d saves, want %d, %v", len(there.Saves), len(here.Saves), err)
	}
	for i := range here.Saves {
		if identity(here.Saves[i]) != identity(there.Saves[i]) || here.Saves[i].GetSeq() != there.Saves[i].GetSeq() {
			t.Fatalf("save %d is %v, want %v", i, there.Saves[i], here.Saves[i])
		}
	}
	for _, message := range []int{0, 7, (saves - 1) / 2} {
		want, err := service(from).MessageHead(ctx, "talk", fmt.Sprint("m", message))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := service(to).MessageHead(ctx, "talk", fmt.Sprint("m", message)); got != want || err != nil {
			t.Errorf("message %d leads to %s, want %s, %v", message, got, want, err)
		}
	}
}
