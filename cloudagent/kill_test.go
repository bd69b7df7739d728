package cloudagent_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/blob/compressed"
	"github.com/stet-dev/stet/cloudagent"
	"github.com/stet-dev/stet/conversation/graph"
	"github.com/stet-dev/stet/internal/testenv"
	"github.com/stet-dev/stet/kv/sealed"
	"github.com/stet-dev/stet/sqlite"
)

// childEnv makes the test binary a writer to the store in that directory.
const childEnv = "STET_CLOUDAGENT_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		fmt.Fprintln(os.Stderr, writeUntilDone(context.Background(), dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// writeUntilDone appends and saves, and acknowledges each by its offset on standard
// output.
func writeUntilDone(ctx context.Context, dir string) error {
	db, err := sqlite.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	s := cloudagent.New(blob.Checked(compressed.New(db.Blobs(), nil)), sealed.New(db.Rows(), nil), nil)
	for i := 0; ; i++ {
		var at cloudagent.Offset
		if i%5 == 4 {
			state, blobs := stateOf(1 + i%7)
			saved, err := s.SaveState(ctx, "a", state, blobs, nil)
			if err != nil {
				return err
			}
			at = saved.Offset
		} else if at, err = s.AppendUpdate(ctx, "a", nil, text("x"), text("y")); err != nil {
			return err
		}
		fmt.Println(at)
	}
}

// A writer that is killed at any moment leaves every event that it acknowledged,
// a log without gaps and a state with all of its blobs.
func TestKilledWriterLosesNothing(t *testing.T) {
	dir := t.TempDir()
	b := embedded(t, dir)
	s, ctx := b.store(), t.Context()
	must[cloudagent.Agent](t)(s.Create(ctx, cloudagent.Spec{ID: "a", Status: running}))
	for loop := range testenv.Scale(6, 200) {
		acked := killAfter(t, dir, 6+loop*7%20)
		now := must[cloudagent.Agent](t)(s.Get(ctx, "a"))
		if now.Head.Seq < acked.Seq {
			t.Fatalf("head is %v, %v was acknowledged", now.Head, acked)
		}
		// Resuming at the acknowledged place works only if it is in the log.
		more, err := s.AppendUpdate(ctx, "a", nil, text("mine"))
		if err != nil {
			t.Fatal(err)
		}
		if n := int(more.Seq - acked.Seq); len(take(t, s, "a", n, &cloudagent.StreamOptions{After: acked.String()})) != n {
			t.Fatalf("the log has a hole after %v", acked)
		}
		if m, err := s.Metadata(ctx, "a"); err == nil && (m.State != now.State || m.OffsetKey != now.StateAt.String()) {
			t.Fatalf("metadata %+v does not fit the record %+v", m, now)
		}
		root := graph.Root{Kind: graph.CloudState, ID: now.State}
		if now.State.IsZero() {
			continue
		}
		if err := graph.Walk(ctx, b.blobs, graph.Roots(root), &graph.Options{ReadLeaves: true}, func(n graph.Node) error { return n.Err }); err != nil {
			t.Fatal(err)
		}
	}
	start := must[cloudagent.Agent](t)(s.Get(ctx, "a"))
	if start.State.IsZero() {
		t.Error("no state was saved, the test shows little")
	}
}

// killAfter runs a writer, kills it after n acknowledgements and returns the
// last one.
func killAfter(t *testing.T, dir string, n int) cloudagent.Offset {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var last string
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		if last = lines.Text(); i == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	return must[cloudagent.Offset](t)(cloudagent.ParseOffset(last))
}
