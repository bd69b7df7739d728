//go:build !portable

package swapdir

import "testing"

func TestReleaseFrom(t *testing.T) {
	for release, want := range map[string]bool{
		"5.17.0": true, "5.17-rc1+": true, "5.16.20": false, "5.100": true, "6.1.0-13-amd64": true, "4.19.0": false,
		"10.0": true, "6": false, "": false, "five.six": false, "6.x": false,
	} {
		if got := releaseFrom(release, 5, 17); got != want {
			t.Errorf("%q: %v, want %v", release, got, want)
		}
	}
}
