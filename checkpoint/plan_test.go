package checkpoint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/workspace"
)

// entry makes an entry from a word: "" is nothing, "dir/" a directory, "@x" a
// link, anything else a file with that content.
func entry(word string) *workspace.Entry {
	switch {
	case word == "":
		return nil
	case strings.HasSuffix(word, "/"):
		return &workspace.Entry{Kind: workspace.Dir, Mode: 0o755}
	case word[0] == '@':
		return &workspace.Entry{Kind: workspace.Symlink, Size: int64(len(word)), ID: blob.Sum([]byte(word))}
	}
	return &workspace.Entry{Kind: workspace.File, Mode: 0o644, Size: int64(len(word)), ID: blob.Sum([]byte(word))}
}

// written makes writes from words such as "c:v1" (by conversation c), "user:v2",
// "hand:v3" and "c+d:v4" (by one of two).
func written(words string) []Write {
	var out []Write
	for word := range strings.FieldsSeq(words) {
		who, what, _ := strings.Cut(word, ":")
		w := Writer{Class: ByConversation, Conversation: who}
		switch {
		case who == "user":
			w = Writer{Class: ByUser}
		case who == "hand":
			w = Writer{Class: ByHand}
		case strings.Contains(who, "+"):
			w = Writer{Class: BySeveral, Among: strings.Split(who, "+")}
		}
		out = append(out, Write{Writer: w, After: entry(what)})
	}
	return out
}

func TestDecide(t *testing.T) {
	tests := []struct {
		name            string
		target, present string
		writes          string
		owner           string
		choice          Choice
		want            ActionKind // "" means none
		becomes         string     // what is there afterwards
	}{
		{"same", "v0", "v0", "c:v1 c:v0", "c", "", "", ""},
		{"agent changed it", "v0", "v1", "c:v1", "c", "", Restore, "v0"},
		{"agent changed it twice", "v0", "v2", "c:v1 c:v2", "c", "", Restore, "v0"},
		{"agent created it", "", "v1", "c:v1", "c", "", Delete, ""},
		{"agent deleted it", "v0", "", "c:", "c", "", Create, "v0"},
		{"agent made a link of it", "v0", "@x", "c:@x", "c", "", Restore, "v0"},
		{"agent made a directory of it", "v0", "d/", "c:d/", "c", "", Restore, "v0"},
		{"user changed it", "v0", "v1", "user:v1", "c", "", Keep, "v1"},
		{"user created it", "", "v1", "user:v1", "c", "", Keep, "v1"},
		{"user deleted it", "v0", "", "user:", "c", "", Keep, ""},
		{"user created, agent changed", "", "v2", "user:v1 c:v2", "c", "", Conflict, "v2"},
		{"user created, agent changed, theirs", "", "v2", "user:v1 c:v2", "c", Theirs, Delete, ""},
		{"agent then user", "v0", "v2", "c:v1 user:v2", "c", "", Conflict, "v2"},
		{"agent then user, keep", "v0", "v2", "c:v1 user:v2", "c", KeepMine, Conflict, "v2"},
		{"agent then user, theirs", "v0", "v2", "c:v1 user:v2", "c", Theirs, Restore, "v0"},
		{"agent changed, user deleted", "v0", "", "c:v1 user:", "c", "", Conflict, ""},
		{"agent deleted, user created it again", "v0", "v2", "c: user:v2", "c", "", Conflict, "v2"},
		{"other conversation", "v0", "v1", "d:v1", "c", "", Keep, "v1"},
		{"other conversation created it", "", "v1", "d:v1", "c", "", Keep, "v1"},
		{"both conversations", "v0", "v2", "d:v1 c:v2", "c", "", Conflict, "v2"},
		{"one of several", "v0", "v1", "c+d:v1", "c", "", Conflict, "v1"},
		{"one of several, theirs", "v0", "v1", "c+d:v1", "c", Theirs, Restore, "v0"},
		{"one of several others", "v0", "v1", "d+e:v1", "c", Theirs, Keep, "v1"},
		{"one of several others, then the agent", "v0", "v2", "d+e:v1 c:v2", "c", "", Conflict, "v2"},
		{"no conversation takes back all", "v0", "v2", "d:v1 c:v2", "", "", Restore, "v0"},
		{"no conversation, by hand", "v0", "v1", "hand:v1", "", "", Restore, "v0"},
		{"no conversation, user since", "v0", "v2", "hand:v1 user:v2", "", "", Conflict, "v2"},
		{"conversation leaves what was saved by hand", "v0", "v1", "hand:v1", "c", "", Keep, "v1"},
		{"nobody known", "v0", "v1", "", "c", "", Keep, "v1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := PathState{Path: "p", Target: entry(tt.target), Present: entry(tt.present), Writes: written(tt.writes)}
			got := Decide([]PathState{p}, Rules{
				Mine:    func(_ string, w Writer) bool { return mine(lone(tt.owner), w) },
				Perhaps: func(w Writer) bool { return perhapsMine(lone(tt.owner), w, true) },
				Choice:  func(string) Choice { return tt.choice },
			})
			if tt.want == "" {
				if len(got) != 0 {
					t.Fatalf("got %v, want nothing", got)
				}
				return
			}
			if len(got) != 1 || got[0].Kind != tt.want || !sameState(got[0].After, entry(tt.becomes)) {
				t.Errorf("got %+v, want %s leading to %q", got, tt.want, tt.becomes)
			}
		})
	}
}

func TestDecideBlind(t *testing.T) {
	rules := Rules{Mine: func(string, Writer) bool { return true }, Choice: func(string) Choice { return Theirs }}
	tests := []struct {
		name  string
		state PathState
	}{
		{"not captured now", PathState{Target: entry("v0"), NotCaptured: workspace.ReasonSpecial, Writes: written("c:")}},
		{"not captured then", PathState{Present: entry("v1"), NotCapturedThen: workspace.ReasonIgnored, Writes: written("c:v1")}},
		{"not asked for", PathState{Present: entry("v1"), Excluded: true, Writes: written("c:v1")}},
	}
	for _, tt := range tests {
		tt.state.Path = "p"
		got := Decide([]PathState{tt.state}, rules)
		if len(got) != 1 || got[0].Kind != Keep || got[0].Reason == "" {
			t.Errorf("%s: %+v, want keep with a reason", tt.name, got)
		}
	}
}

// statesOf makes states from lines: path, target, present, writes.
func statesOf(lines []string) []PathState {
	var states []PathState
	for _, line := range lines {
		part := strings.Split(line, "|")
		states = append(states, PathState{Path: part[0], Target: entry(part[1]), Present: entry(part[2]), Writes: written(part[3])})
	}
	return states
}

func TestReconcile(t *testing.T) {
	tests := []struct {
		name   string
		states []string
		choice map[string]Choice
		want   []string
	}{
		{"directory goes with its files",
			[]string{"d||d/|c:d/", "d/a||v|c:v"}, nil,
			[]string{"delete d", "delete d/a"}},
		{"directory stays with the user's file",
			[]string{"d||d/|c:d/", "d/a||v|c:v", "d/mine||v|user:v"}, nil,
			[]string{"keep d", "delete d/a", "keep d/mine"}},
		{"directories above stay too",
			[]string{"d||d/|c:d/", "d/e||d/|c:d/", "d/e/mine||v|user:v"}, nil,
			[]string{"keep d", "keep d/e", "keep d/e/mine"}},
		{"directory comes back with its files",
			[]string{"d|d/||c:", "d/a|v||c:"}, nil,
			[]string{"create d", "create d/a"}},
		{"a directory that the user removed comes back for what is taken",
			[]string{"d|d/||user:", "d/a|v||c:w user:"}, map[string]Choice{"d/a": Theirs},
			[]string{"create d", "create d/a"}},
		{"the user's file is in the way of a directory",
			[]string{"d|d/|v|user:v", "d/a|v||c:"}, nil,
			[]string{"keep d", "conflict d/a"}},
		{"the user's file gives way to a directory for what is taken",
			[]string{"d|d/|v|user:v", "d/a|v||c:"}, map[string]Choice{"d/a": Theirs},
			[]string{"restore d", "create d/a"}},
		{"a directory with the user's file is in the way of a file",
			[]string{"d|v|d/|c:d/", "d/mine||v|user:v"}, nil,
			[]string{"conflict d", "keep d/mine"}},
		{"a file that became a directory",
			[]string{"d|v|d/|c:d/", "d/a||v|c:v"}, nil,
			[]string{"restore d", "delete d/a"}},
		{"names that sort between a directory and what it holds",
			[]string{"d||d/|c:d/", "d-x||v|user:v", "d/a||v|c:v"}, nil,
			[]string{"delete d", "keep d-x", "delete d/a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			states := statesOf(tt.states)
			rules := Rules{
				Mine:   func(_ string, w Writer) bool { return mine(lone("c"), w) },
				Choice: func(path string) Choice { return tt.choice[path] },
			}
			var got []string
			for _, a := range Reconcile(Decide(states, rules), states, rules) {
				got = append(got, fmt.Sprintf("%s %s", a.Kind, a.Path))
			}
			same(t, "actions", got, tt.want)
		})
	}
}

// What c did is taken out and what e did stays: e's files hold directories, although
// they are not in the plan.
func TestReconcileLift(t *testing.T) {
	tests := []struct {
		name   string
		states []string
		want   []string // action, path, why
	}{
		{"directory goes with its files",
			[]string{"d||d/|c:d/", "d/a||v|c:v", "x||v|e:v"},
			[]string{"delete d ", "delete d/a "}},
		{"directory stays with later work",
			[]string{"d||d/|c:d/", "d/a||v|c:v", "d/b||v|e:v"},
			[]string{"keep d holds", "delete d/a "}},
		{"directories above stay too",
			[]string{"d||d/|c:d/", "d/s||d/|c:d/", "d/s/b||v|e:v"},
			[]string{"keep d holds", "keep d/s holds"}},
		{"directory with later work in the place of a file",
			[]string{"d|v|d/|c:d/", "d/b||v|e:v"},
			[]string{"conflict d holds"}},
		{"directory that was removed later comes back with its file",
			[]string{"d|d/||e:", "d/a|v||c:", "d/b|v||e:"},
			[]string{"create d ", "create d/a "}},
		{"and so do those above it",
			[]string{"d|d/||e:", "d/s|d/||e:", "d/s/a|v||c:"},
			[]string{"create d ", "create d/s ", "create d/s/a "}},
		{"a later file is in the way",
			[]string{"d|d/|v|e:v", "d/a|v||c:"},
			[]string{"conflict d/a in-the-way"}},
		{"directory does not come back for what cannot be merged",
			[]string{"d|d/||e:", "d/a|v||c:w e:"},
			[]string{"conflict d/a conversation"}},
		{"directory comes back for what was removed, made and removed",
			[]string{"d|d/||e:", "d/a|v||c: e:w e:"},
			[]string{"create d ", "conflict d/a conversation"}},
		{"nothing is in the way of what was changed later",
			[]string{"d||d/|c:d/", "d/a||w|c:v e:w"},
			[]string{"keep d holds", "conflict d/a conversation"}},
		{"one of several",
			[]string{"f|v|w|c+e:w", "g|v|w|e+k:w"},
			[]string{"keep f several"}},
	}
	rules := Rules{
		Lift:   true,
		Mine:   func(_ string, w Writer) bool { return w.Conversation == "c" },
		Unsure: func(w Writer) bool { return w.maybe("c", 1) },
		Choice: func(string) Choice { return KeepMine },
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			states := statesOf(tt.states)
			var got []string
			for _, a := range Reconcile(Decide(states, rules), states, rules) {
				got = append(got, fmt.Sprintf("%s %s %s", a.Kind, a.Path, a.Why))
			}
			same(t, "actions", got, tt.want)
		})
	}
}

func TestMergeLines(t *testing.T) {
	tests := []struct {
		name, base, mine, theirs, want string
		collisions                     int
	}{
		{"only theirs", "1 2 3", "1 2 3", "1 x 3", "1 x 3", 0},
		{"only mine", "1 2 3", "1 2 y", "1 2 3", "1 2 y", 0},
		{"far apart", "1 2 3 4 5", "1 2 3 4 y", "x 2 3 4 5", "x 2 3 4 y", 0},
		{"both the same", "1 2 3", "1 x 3", "1 x 3", "1 x 3", 0},
		{"insertions at both ends", "1 2", "0 1 2", "1 2 3", "0 1 2 3", 0},
		{"deletion and change elsewhere", "1 2 3 4", "1 2 3 y", "2 3 4", "2 3 y", 0},
		{"same line", "1 2 3", "1 y 3", "1 x 3", "1 <<<<<<< present y ======= x >>>>>>> rewind 3", 1},
		{"deleted and changed", "1 2 3", "1 y 3", "1 3", "1 <<<<<<< present y ======= >>>>>>> rewind 3", 1},
		{"two collisions", "1 2 3 4 5", "a 2 3 4 b", "c 2 3 4 d",
			"<<<<<<< present a ======= c >>>>>>> rewind 2 3 4 <<<<<<< present b ======= d >>>>>>> rewind", 2},
		{"from nothing", "", "1", "1", "1", 0},
	}
	// A space in the tables ends a line; "<<<<<<< present" is one.
	text := func(s string) []byte {
		s = strings.NewReplacer("<< present", "<<_present", ">> rewind", ">>_rewind").Replace(s)
		s = strings.ReplaceAll(s, " ", "\n")
		s = strings.ReplaceAll(s, "_", " ")
		if s != "" {
			s += "\n"
		}
		return []byte(s)
	}
	for _, tt := range tests {
		got, n := MergeLines(text(tt.base), text(tt.mine), text(tt.theirs))
		if string(got) != string(text(tt.want)) || n != tt.collisions {
			t.Errorf("%s: %d collisions,\n%s\nwant %d,\n%s", tt.name, n, got, tt.collisions, text(tt.want))
		}
	}
}
