package testenv

import (
	"fmt"
	"os"
	"strings"
)

// slowShare is the fraction of calls at which tests have their faults where files are slow.
const slowShare = 16

// SlowFiles reports whether a call of a file takes long, as under Wine (STET_SLOW_FILES=1),
// and the run is a quick one.
func SlowFiles() bool { return Quick() && os.Getenv("STET_SLOW_FILES") == "1" }

// Point is a call at which a test has its fault: the one with a number, from 1, or the
// first of a kind. The kind of a call is its first word. The zero point is never reached.
type Point struct {
	Number int
	Kind   string
}

func (p Point) String() string {
	switch {
	case p.Kind != "":
		return "the first " + p.Kind
	case p.Number == 0:
		return "the end"
	}
	return fmt.Sprintf("call %d", p.Number)
}

// Points returns where a test has its faults that has seen the calls of a run without one:
// at the call with the number first, and at each that is a multiple of every further. Where
// files are slow it is at a part of these, and at the first call of each kind, so that no
// kind goes without a fault.
func Points(calls []string, first, every int) []Point {
	var points []Point
	seen := map[string]bool{}
	slow := SlowFiles()
	if slow {
		every *= slowShare
	}
	for i, call := range calls {
		switch kind, _, _ := strings.Cut(call, " "); {
		case slow && !seen[kind]:
			seen[kind] = true
			points = append(points, Point{Kind: kind})
		case i+1 >= first && (i+1-first)%every == 0:
			points = append(points, Point{Number: i + 1})
		}
	}
	return points
}

// Watch returns a function for the calls of one run, in their order. It says whether a call
// comes before the point (negative), is the point (0) or comes after it (positive). The
// first call of a kind is found in each run, also where files are handled side by side and
// the numbers of their calls differ.
func (p Point) Watch() func(call string) int {
	calls, reached := 0, false
	return func(call string) int {
		calls++
		if reached {
			return 1
		}
		kind, _, _ := strings.Cut(call, " ")
		if reached = calls == p.Number || p.Kind != "" && kind == p.Kind; reached {
			return 0
		}
		return -1
	}
}
