package cli

import (
	"strings"
	"testing"
	"time"
)

func TestNoticesOfRewinds(t *testing.T) {
	at := time.Date(2026, 11, 16, 14, 20, 0, 0, time.Local)
	for _, c := range []struct {
		out, known []uint64
		want       string
	}{
		{nil, nil, ""},
		{[]uint64{3, 4}, []uint64{3, 4}, ""},
		{[]uint64{3, 4}, nil, "stet: the user rewound the files to after turn 2 at 14:20; turns 3 and 4 of this conversation are no longer in the files"},
		{[]uint64{1}, nil, "stet: the user rewound the files to before turn 1 at 14:20; turn 1 of this conversation is no longer in the files"},
		{[]uint64{2, 3, 4}, []uint64{4}, "stet: the user rewound the files to after turn 1 at 14:20; turns 2 and 3 of this conversation are no longer in the files"},
		{nil, []uint64{3, 4, 5}, "stet: the user undid a rewind; turns 3 to 5 of this conversation are in the files again"},
		{[]uint64{2, 5, 7}, []uint64{9}, "turns 2, 5 and 7 of this conversation are no longer in the files; the user undid a rewind; turn 9 of"},
	} {
		got := noticeText(c.out, c.known, at)
		if got != c.want && (!strings.Contains(got, c.want) || c.want == "") {
			t.Errorf("%v, known %v: got %q, want %q", c.out, c.known, got, c.want)
		}
	}
}
