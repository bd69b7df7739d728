package server_test

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/gen/stet/v1/stetv1connect"
	"github.com/stet-dev/stet/internal/attempt"
	"github.com/stet-dev/stet/server"
	"github.com/stet-dev/stet/workspace"
)

// blamed writes an answer down as one word for each range: lines, author, turn, checkpoint.
func blamed(res *stetv1.BlameResponse) string {
	var words []string
	for _, r := range res.GetRanges() {
		o := res.GetOrigins()[r.GetOrigin()]
		words = append(words, fmt.Sprintf("%d+%d:%s/%d/%s", r.GetLine(), r.GetLines(), o.GetKind(), o.GetTurn(), o.GetName()))
	}
	return strings.Join(words, " ")
}

func TestBlameOverTheWire(t *testing.T) {
	db, err := stet.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	b := newBenchAt(t, http, base)
	res := call(t, b.checkpoints.Blame, &stetv1.BlameRequest{Ref: b.after.GetId(), Path: "cart.go"})
	if got, want := blamed(res), "1+1:you/0/c1 2+1:agent/1/c2 3+1:you/0/c1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if o := res.GetOrigins()[1]; o.GetConversation() != b.conv || o.GetPrompt() != "add a price" || o.GetPlace() != "after turn 1" || o.GetTimeMs() == 0 {
		t.Errorf("the origin of the agent's line: %v", o)
	}
	res = call(t, b.checkpoints.Blame, &stetv1.BlameRequest{Workspace: b.dir, Ref: "c1", Path: "cart.go"})
	if got, want := blamed(res), "1+3:you/0/c1"; got != want {
		t.Errorf("at the first checkpoint: %s, want %s", got, want)
	}

	// The files now, which nothing stores.
	b.write("cart.go", "one\n2 < 3\nthree\nfour\n")
	res = call(t, b.checkpoints.Blame, &stetv1.BlameRequest{Workspace: b.dir, Path: "cart.go"})
	if got, want := blamed(res), "1+1:you/0/c1 2+1:agent/1/c2 3+1:you/0/c1 4+1:you/0/"; got != want {
		t.Errorf("the files now: %s, want %s", got, want)
	}
	if has, err := db.Blobs().Has(t.Context(), blob.Sum([]byte("one\n2 < 3\nthree\nfour\n"))); err != nil || has[0] {
		t.Errorf("a look stored what it saw: %v, %v", has, err)
	}

	refuse(t, b.checkpoints.Blame, &stetv1.BlameRequest{Ref: b.after.GetId(), Path: "none.go"}, connect.CodeNotFound)
	refuse(t, b.checkpoints.Blame, &stetv1.BlameRequest{Ref: b.after.GetId(), Path: "lib"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Blame, &stetv1.BlameRequest{Ref: b.after.GetId(), Path: "../cart.go"}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Blame, &stetv1.BlameRequest{Ref: b.after.GetId()}, connect.CodeInvalidArgument)
	refuse(t, b.checkpoints.Blame, &stetv1.BlameRequest{Path: "cart.go"}, connect.CodeInvalidArgument)
}

func TestAttemptsBesideEachOther(t *testing.T) {
	ctx := t.Context()
	db, err := stet.Open(ctx, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	http, base := dial(t, serveDB(t, db, &server.Options{Token: token}), token).HTTP()
	b := newBenchAt(t, http, base)
	from, err := db.Checkpoints().Resolve(ctx, checkpoint.WorkspaceID(b.dir), "", "c2")
	if err != nil {
		t.Fatal(err)
	}
	keep := attempt.Keeper{Checkpoints: db.Checkpoints(), Conversations: db.Conversations()}
	for n, score := range []float64{1, 3, 2} {
		run, err := attempt.Begin(ctx, keep, attempt.Plan{Try: "abc", Number: n + 1, Base: from, Workspace: b.dir, Command: "agent --fast", Agent: "agent", Author: "me"})
		if err != nil {
			t.Fatal(err)
		}
		entry, err := workspace.PutFile(ctx, db.Blobs(), strings.NewReader(fmt.Sprint("attempt ", n, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		entry.Mode = 0o644
		tree, err := workspace.Edit(ctx, db.Blobs(), from.Tree, map[string]*workspace.Entry{"made.txt": &entry})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.End(ctx, attempt.Result{Tree: tree, Score: &score, Files: 1, Added: 1, Words: b.conv}); err != nil {
			t.Fatal(err)
		}
	}
	page := stetv1connect.NewPageServiceClient(http, base)
	res := call(t, page.Attempts, &stetv1.AttemptsRequest{Try: "abc"})
	if len(res.GetAttempts()) != 3 || res.Best == nil || res.GetBest() != 1 {
		t.Fatalf("%d attempts, the best is %v; want 3 and the second", len(res.GetAttempts()), res.Best)
	}
	one := res.GetAttempts()[1]
	if one.GetId() != "try-abc-2" || one.GetScore() != 3 || !one.GetEnded() || one.GetWords() != b.conv || one.GetCommand() != "agent --fast" {
		t.Errorf("the second attempt: %v", one)
	}
	diff := call(t, b.checkpoints.Diff, &stetv1.DiffRequest{From: one.GetBase(), To: one.GetLast(), StatOnly: true})
	if len(diff.GetFiles()) != 1 || diff.GetFiles()[0].GetPath() != "made.txt" {
		t.Errorf("the second attempt changed %v", diff.GetFiles())
	}
	if text := refuse(t, b.checkpoints.Blame, &stetv1.BlameRequest{Ref: one.GetLast(), Path: "made.txt"}, connect.CodeInvalidArgument); !strings.Contains(text, "stet try") {
		t.Errorf("a branch is refused with %q", text)
	}

	// One that was removed is missing; a try without any is not found.
	call(t, b.conversations.Delete, &stetv1.DeleteConversationRequest{Id: "try-abc-1"})
	if res := call(t, page.Attempts, &stetv1.AttemptsRequest{Try: "abc"}); len(res.GetAttempts()) != 2 || res.GetBest() != 0 {
		t.Errorf("after one was removed: %v", res)
	}
	refuse(t, page.Attempts, &stetv1.AttemptsRequest{Try: "none"}, connect.CodeNotFound)
}
