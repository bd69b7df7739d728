// Package bisect finds which of many states in a row is the first bad one, with as
// few tests as possible. It promises that the state it names is bad and the one
// before it good; if tests were skipped between them, it names every state that may
// be the first bad one.
//
//	found, err := bisect.Run(ctx, bisect.Options{Keys: trees, Jobs: 4},
//		func(ctx context.Context, i int) (bisect.Verdict, error) { … })
//	fmt.Println("broken by", found.Bad)
//
// Search decides what to test next and runs no tests; Run tests several states at
// once, each content only once, and stops tests that no longer matter. The caller
// defines what a state is and how it is tested.
package bisect

// Verdict is the result of a test.
type Verdict int

// The verdicts.
const (
	// Untested: there is none yet.
	Untested Verdict = iota
	Good
	Bad
	// Skip: the state cannot be tested.
	Skip
)

func (v Verdict) String() string {
	return [...]string{"untested", "good", "bad", "skip"}[v]
}

// Search is the search among states 0 to n-1, of which the first is good and the last bad.
// It is not safe for concurrent use.
type Search struct {
	verdicts []Verdict
	good     int // the last good one
	bad      int // the first bad one
}

// New begins a search among n states, at least two.
func New(n int) *Search {
	s := &Search{verdicts: make([]Verdict, n), bad: n - 1}
	s.verdicts[0], s.verdicts[n-1] = Good, Bad
	return s
}

// Wanted reports whether the verdict about a state would say anything new.
func (s *Search) Wanted(i int) bool {
	return s.good < i && i < s.bad && s.verdicts[i] == Untested
}

// Report takes a verdict. It ignores one about a state that is not wanted: if
// verdicts contradict each other, the first one counts.
func (s *Search) Report(i int, v Verdict) {
	if !s.Wanted(i) {
		return
	}
	s.verdicts[i] = v
	switch v {
	case Good:
		s.good = i
	case Bad:
		s.bad = i
	}
}

// Next returns the states to test now so that jobs tests run at once, given those
// that are running already. It returns none if there is nothing more to start.
func (s *Search) Next(jobs int, running ...int) []int {
	taken := make(map[int]bool, jobs)
	for _, i := range running {
		if s.Wanted(i) {
			taken[i] = true
		}
	}
	var open []int
	skipped := false
	for i := s.good + 1; i < s.bad; i++ {
		skipped = skipped || s.verdicts[i] == Skip
		if s.verdicts[i] == Untested && !taken[i] {
			open = append(open, i)
		}
	}
	var next []int
	if len(taken) == 0 && !skipped { // cut into equal parts
		for k := 1; k <= jobs && len(open) > 0; k++ {
			if i := open[min(len(open)-1, k*len(open)/(jobs+1))]; !taken[i] {
				taken[i] = true
				next = append(next, i)
			}
		}
		return next
	}
	for len(taken) < jobs {
		i := s.middle(taken)
		if i < 0 {
			break
		}
		taken[i] = true
		next = append(next, i)
	}
	return next
}

// middle returns the middle of the longest run of states that are neither tested nor
// taken, or -1. States near a skipped one are likely to be skipped, too; this leads
// away from them.
func (s *Search) middle(taken map[int]bool) int {
	at, longest, run := -1, 0, 0
	for i := s.good + 1; i <= s.bad; i++ {
		if i < s.bad && s.verdicts[i] == Untested && !taken[i] {
			run++
			continue
		}
		if run > longest {
			at, longest = i-1-run/2, run
		}
		run = 0
	}
	return at
}

// Found is the result of a search.
type Found struct {
	// Good is the last good state, and Bad the first state known to be bad.
	Good, Bad int
	// Skipped are the states between them, which could not be tested: each may be the first
	// bad one, too.
	Skipped []int
	// Tests is the number of tests that were started.
	Tests int
}

// Found returns the result, and whether the search is finished.
func (s *Search) Found() (Found, bool) {
	found := Found{Good: s.good, Bad: s.bad}
	for i := s.good + 1; i < s.bad; i++ {
		if s.verdicts[i] == Untested {
			return Found{}, false
		}
		found.Skipped = append(found.Skipped, i)
	}
	return found, true
}
