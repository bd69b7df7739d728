package testenv

import (
	"fmt"
	"slices"
	"testing"
)

func TestPoints(t *testing.T) {
	calls := []string{"create a", "create b", "write a", "write b", "commit"}
	for range 40 {
		calls = append(calls, "swap x")
	}
	for name, c := range map[string]struct {
		slow         string
		first, every int
		want         string
	}{
		"every call":                  {first: 1, every: 1, want: fmt.Sprint(numbers(1, 45, 1))},
		"a part":                      {first: 4, every: 12, want: "[call 4 call 16 call 28 call 40]"},
		"slow files":                  {slow: "1", first: 1, every: 1, want: "[the first create the first write the first commit the first swap call 17 call 33]"},
		"a part where files are slow": {slow: "1", first: 10, every: 2, want: "[the first create the first write the first commit the first swap call 10 call 42]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("STET_SLOW_FILES", c.slow)
			t.Setenv("STET_FULL", "")
			t.Setenv("STET_LONG", "")
			if got := fmt.Sprint(Points(calls, c.first, c.every)); got != c.want {
				t.Errorf("points %s, want %s", got, c.want)
			}
		})
	}
}

func numbers(first, last, every int) (points []Point) {
	for n := first; n <= last; n += every {
		points = append(points, Point{Number: n})
	}
	return points
}

func TestPointsAreFound(t *testing.T) {
	calls := []string{"create a", "create b", "write a", "create c"}
	for point, want := range map[Point][]int{
		{Number: 2}:       {-1, 0, 1, 1},
		{Kind: "create"}:  {0, 1, 1, 1},
		{Kind: "write"}:   {-1, -1, 0, 1},
		{Kind: "symlink"}: {-1, -1, -1, -1},
	} {
		watch := point.Watch()
		var got []int
		for _, call := range calls {
			got = append(got, watch(call))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v is found at %v, want %v", point, got, want)
		}
	}
}
