package agentrun_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stet-dev/stet/agentrun"
	"github.com/stet-dev/stet/internal/testenv"
)

// play runs a conversation of two messages, with the streams cut at the given
// frames, and returns the client.
func play(t testing.TB, cuts []int) (*client, *server, agentrun.Result) {
	t.Helper()
	s := listen(t, agentrun.ServeOptions{Agent: agentrun.NewScripted(
		everything(),
		[]agentrun.Line{{Shell: "git push"}, {Edit: &agentrun.FileEdit{Path: "retry.go", Content: "package retry // done\n"}}, {Say: "Pushed."}},
	)})
	s.cuts = cuts
	c := newClient(t, nil)
	q := agentrun.NewQueue()
	for _, id := range []string{"m1", "m2"} {
		_, err := q.Add(message(id, "text of "+id))
		must(t, err)
	}
	req := c.request(nil)
	req.Queue, req.Attempts = q, len(cuts)+1
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := agentrun.Run(ctx, agentrun.Connect(s.client), req)
	if err != nil {
		t.Fatalf("cuts %v: %v", cuts, err)
	}
	return c, s, result
}

// same checks that a run came to the same end as one that nobody disturbed.
func same(t testing.TB, cuts []int, got, want *client) {
	t.Helper()
	equal(t, fmt.Sprintf("state after cuts %v", cuts), got.state(t), want.state(t))
	for id, n := range got.tools.counts() {
		if n != 1 {
			t.Fatalf("cuts %v: call %s was executed %d times", cuts, id, n)
		}
	}
	if got, want := len(got.tools.counts()), len(want.tools.counts()); got != want {
		t.Fatalf("cuts %v: %d calls were executed, want %d", cuts, got, want)
	}
	if ids := messages(got.state(t)); ids != "m1 m2" {
		t.Fatalf("cuts %v: messages are %q", cuts, ids)
	}
	if got, want := got.root(t), want.root(t); got != want {
		t.Fatalf("cuts %v: the root is %s, want %s", cuts, got.Short(), want.Short())
	}
}

// The connection is cut before every single frame of a run, in either direction.
func TestACutAtAnyFrameChangesNothing(t *testing.T) {
	want, s, _ := play(t, nil)
	most := 0
	for _, n := range s.passed() {
		most = max(most, n)
	}
	if most < 60 {
		t.Fatalf("the longest stream has %d frames, which is too few to mean anything", most)
	}
	step := max(1, most/testenv.Scale(most, most))
	resumed := 0
	for cut := 1; cut <= most+2; cut += step {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			got, _, result := play(t, []int{cut})
			same(t, []int{cut}, got, want)
			resumed += result.Resumed
		})
	}
	t.Logf("%d frames, %d resumed runs", most, resumed)
	if resumed < most/step-5 {
		t.Errorf("only %d of %d cuts broke the connection", resumed, most)
	}
}

// Several cuts, also while a run is being resumed.
func TestAnyNumberOfCutsChangesNothing(t *testing.T) {
	want, _, _ := play(t, nil)
	left := testenv.Scale(25, 2000)
	rapid.Check(t, func(rt *rapid.T) {
		cuts := rapid.SliceOfN(rapid.IntRange(1, 90), 1, 8).Draw(rt, "cuts")
		if left--; left < 0 {
			return
		}
		t.Run("", func(t *testing.T) {
			got, _, _ := play(t, cuts)
			same(t, cuts, got, want)
		})
	})
}
