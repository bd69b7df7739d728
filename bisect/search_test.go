package bisect

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

func keys(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}

// planted tests states of which all from bad on are bad, and some cannot be tested.
func planted(bad int, skipped map[int]bool) Test {
	return func(_ context.Context, i int) (Verdict, error) {
		switch {
		case skipped[i]:
			return Skip, nil
		case i >= bad:
			return Bad, nil
		}
		return Good, nil
	}
}

// Every planted state among 1,000 is found, within the tests that halving takes.
func TestFindsThePlantedOne(t *testing.T) {
	const n = 1000
	for bad := 1; bad < n; bad += 7 {
		for _, jobs := range []int{1, 2, 3, 8} {
			found, err := Run(t.Context(), Options{Keys: keys(n), Jobs: jobs}, planted(bad, nil))
			if err != nil || found.Bad != bad || found.Good != bad-1 || len(found.Skipped) > 0 {
				t.Fatalf("planted %d, %d jobs: %+v, %v", bad, jobs, found, err)
			}
			if jobs == 1 && found.Tests > 12 { // both ends and 10 halvings
				t.Errorf("planted %d: %d tests", bad, found.Tests)
			}
		}
	}
}

// With states that cannot be tested, alone and in runs, the planted one is named, or is
// among those that it may be.
func TestFindsThePlantedOneDespiteSkips(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 150 {
		n := 2 + rng.IntN(1000)
		bad := 1 + rng.IntN(n-1)
		skipped := make(map[int]bool)
		for range rng.IntN(1 + n/4) {
			skipped[1+rng.IntN(n-1)] = true
		}
		from := rng.IntN(n)
		for i := from; i < from+rng.IntN(200); i++ {
			skipped[i] = true
		}
		delete(skipped, 0)
		delete(skipped, n-1)
		found, err := Run(t.Context(), Options{Keys: keys(n), Jobs: 1 + round%5}, planted(bad, skipped))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if skipped[found.Good] || skipped[found.Bad] || found.Good >= bad || found.Bad < bad {
			t.Fatalf("round %d: planted %d, found %+v", round, bad, found)
		}
		for _, i := range found.Skipped {
			if !skipped[i] {
				t.Fatalf("round %d: %d was not skipped", round, i)
			}
		}
		if found.Bad-found.Good != len(found.Skipped)+1 {
			t.Fatalf("round %d: not everything between is named: %+v", round, found)
		}
	}
}

// A long run of states that cannot be tested does not lead to a test of each of them.
func TestSkipsAreAvoided(t *testing.T) {
	skipped := make(map[int]bool)
	for i := 400; i < 600; i++ {
		skipped[i] = true
	}
	found, err := Run(t.Context(), Options{Keys: keys(1000)}, planted(900, skipped))
	if err != nil || found.Bad != 900 || found.Tests > 20 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Each content is tested once.
func TestEqualStatesAreTestedOnce(t *testing.T) {
	same := keys(100)
	for i := range same {
		same[i] = fmt.Sprint(i / 10) // ten of each
	}
	var mu sync.Mutex
	tested := make(map[string]int)
	found, err := Run(t.Context(), Options{Keys: same, Jobs: 1}, func(ctx context.Context, i int) (Verdict, error) {
		mu.Lock()
		defer mu.Unlock()
		tested[same[i]]++
		return planted(50, nil)(ctx, i)
	})
	if err != nil || found.Bad != 50 {
		t.Fatalf("%+v, %v", found, err)
	}
	for key, n := range tested {
		if n > 1 {
			t.Errorf("%s was tested %d times", key, n)
		}
	}
}

func TestEnds(t *testing.T) {
	all := func(v Verdict) Test {
		return func(context.Context, int) (Verdict, error) { return v, nil }
	}
	for name, c := range map[string]struct {
		n    int
		test Test
		want error
	}{
		"all good":    {10, all(Good), ErrBadEnd},
		"all bad":     {10, all(Bad), ErrGoodEnd},
		"all skipped": {10, all(Skip), ErrSkippedEnd},
		"one state":   {1, all(Good), ErrTooFew},
		"none":        {0, all(Good), ErrTooFew},
		"good end skipped": {10, func(ctx context.Context, i int) (Verdict, error) {
			return planted(5, map[int]bool{0: true})(ctx, i)
		}, ErrSkippedEnd},
	} {
		for _, jobs := range []int{1, 3} {
			if _, err := Run(t.Context(), Options{Keys: keys(c.n), Jobs: jobs}, c.test); !errors.Is(err, c.want) {
				t.Errorf("%s, %d jobs: %v, want %v", name, jobs, err, c.want)
			}
		}
	}
	if _, err := Run(t.Context(), Options{Keys: []string{"a", "b", "a"}}, planted(1, nil)); !errors.Is(err, ErrTooFew) {
		t.Errorf("equal ends: %v", err)
	}
}

// An error ends the search, and a test that no longer matters is stopped; neither leaves a
// test running.
func TestNothingIsLeftRunning(t *testing.T) {
	broken := errors.New("broken")
	var mu sync.Mutex
	running := 0
	count := func(by int) {
		mu.Lock()
		running += by
		mu.Unlock()
	}
	_, err := Run(t.Context(), Options{Keys: keys(100), Jobs: 4}, func(ctx context.Context, i int) (Verdict, error) {
		count(1)
		defer count(-1)
		switch i {
		case 0:
			return Good, nil
		case 99:
			return Bad, nil
		case 20: // the first of four
			return 0, broken
		}
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if !errors.Is(err, broken) || running != 0 {
		t.Errorf("%v, %d tests left running", err, running)
	}
	found, err := Run(t.Context(), Options{Keys: keys(100), Jobs: 4}, func(ctx context.Context, i int) (Verdict, error) {
		count(1)
		defer count(-1)
		if i > 21 && i != 99 { // one of these never ends by itself
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return planted(11, nil)(ctx, i)
	})
	if err != nil || found.Bad != 11 || running != 0 {
		t.Errorf("%+v, %v, %d tests left running", found, err, running)
	}
}

func TestVerdictsThatContradict(t *testing.T) {
	s := New(10)
	s.Report(5, Bad)
	s.Report(7, Good) // no longer wanted
	s.Report(3, Good)
	if next := s.Next(8); !slices.Equal(next, []int{4}) {
		t.Errorf("next %v, want 4", next)
	}
	s.Report(4, Skip)
	if found, done := s.Found(); !done || found.Good != 3 || found.Bad != 5 || !slices.Equal(found.Skipped, []int{4}) {
		t.Errorf("%+v, %v", found, done)
	}
}
