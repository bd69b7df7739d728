//go:build unix

package checkpoint

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stet-dev/stet/internal/testenv"
)

// The model of this file knows who really wrote what. It drives a workspace at
// random: a user and several conversations write, turns overlap, runs are killed,
// programs write through mappings, ignore rules come and go. At every path a rewind
// must do what the model expects, and an undo must bring everything back.

// version is one state of a path, and the stretch of history (the time between two
// checkpoints) whose end first showed it.
type version struct {
	content string // "" is absence
	stretch int
	claimed string     // the conversation that said that it wrote it
	both    bool       // two conversations said so
	veiled  bool       // a rule kept the checkpoint before from knowing whether there was a file
	after   []*version // the versions that replaced it, one for each branch of the history
}

// modelTurn is a turn as the model sees it.
type modelTurn struct {
	conv    string
	number  uint64
	process int
}

// stretch is the time between two checkpoints: the conversations that were at work
// in it to its end, and those that were killed in it.
type stretch struct{ open, killed []string }

// moment is a checkpoint that a rewind may go to, with the versions that led there.
type moment struct {
	rec   *Record
	conv  string
	rules string
	past  map[string][]*version
}

// ownership is the model and the workspace that it is compared with.
type ownership struct {
	*fixture
	rnd     *rand.Rand
	clock   *clock
	seq     int
	open    map[string]*modelTurn // by conversation
	turns   map[string]uint64
	alive   map[int]bool // processes
	during  []stretch
	killed  []string // in the stretch that goes on
	past    map[string][]*version
	touched map[string]map[string]bool // by conversation: what it wrote since its last checkpoint, and nobody after it
	moments []*moment
	mapped  map[string][]byte
	moved   map[string]int // how many rewinds changed a path
	rules   string         // at the last checkpoint
	trace   []string
}

var (
	ownedPaths = []string{"a", "b", "c", "d/e", "d/f", "gen/g", "gen/h", "log"}
	ownerNames = []string{"A", "B", "C"}
)

// contentSize is that of every content, so that no change shows in a size.
const contentSize = 48

func newOwnership(t *testing.T, seed uint64) *ownership {
	m := &ownership{
		fixture: newFixture(t), rnd: rand.New(rand.NewPCG(seed, 13)), clock: newClock(),
		open: map[string]*modelTurn{}, turns: map[string]uint64{}, alive: map[int]bool{},
		past: map[string][]*version{}, touched: map[string]map[string]bool{}, mapped: map[string][]byte{}, moved: map[string]int{},
	}
	m.opts.Now = m.clock.Now
	m.opts.life = func(p Process) Life {
		if m.alive[p.PID] {
			return Alive
		}
		return Gone
	}
	m.reopen()
	m.write("d/keep", "x", "gen/keep", "x", ".gitignore", "nothing\n")
	m.save(Request{})
	m.observe()
	return m
}

func (m *ownership) logf(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

func (m *ownership) pick(of []string) string { return of[m.rnd.IntN(len(of))] }

// content returns what is at a path.
func (m *ownership) content(path string) string {
	data, err := os.ReadFile(m.path(path))
	if err != nil {
		return ""
	}
	return string(data)
}

// change writes or removes a path on behalf of one of the writers.
func (m *ownership) change(by string) {
	path := m.pick(ownedPaths)
	if m.fresh(path) {
		return
	}
	m.seq++
	content := fmt.Sprintf("%-*s\n", contentSize-1, fmt.Sprintf("%s %d by %s", path, m.seq, by))
	how := m.rnd.IntN(10)
	switch {
	case how < 2:
		m.unmap(path)
		m.remove(path)
	case how < 4 && m.mapping(path) != nil:
		copy(m.mapping(path), content)
	case how < 6: // in place, with the old time
		info, err := os.Stat(m.path(path))
		m.write(path, content)
		if err == nil {
			must(m.t, os.Chtimes(m.path(path), info.ModTime(), info.ModTime()))
		}
	default:
		m.write(path, content)
	}
	m.logf("%s changes %s to %q (%d)", by, path, strings.TrimSpace(m.content(path)), how)
	for conv, paths := range m.touched {
		if conv != by {
			delete(paths, path)
		}
	}
	if m.open[by] != nil {
		m.touched[by][path] = true
	}
}

// mapping returns a shared mapping of a file whose page is dirty, so that stores
// to it move no stamp; nil if there is no file.
func (m *ownership) mapping(path string) []byte {
	if page := m.mapped[path]; page != nil {
		return page
	}
	f, err := os.OpenFile(m.path(path), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, contentSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(m.t, err)
	page[0] = 'x' // dirties it; its owner is about to write it anyway
	m.mapped[path] = page
	return page
}

func (m *ownership) unmap(path string) {
	if page := m.mapped[path]; page != nil {
		must(m.t, unix.Munmap(page))
		delete(m.mapped, path)
	}
}

// observe ends a stretch: what a checkpoint sees of it becomes history.
func (m *ownership) observe() {
	m.during = append(m.during, stretch{open: slices.Collect(maps.Keys(m.open)), killed: m.killed})
	m.killed = nil
	for _, path := range ownedPaths {
		now, past := m.content(path), m.past[path]
		if len(past) == 0 && now == "" || len(past) > 0 && past[len(past)-1].content == now {
			continue
		}
		next := &version{content: now, stretch: len(m.during) - 1, veiled: latest(past) == "" && ignores(m.rules, path)}
		if len(past) > 0 {
			last := past[len(past)-1]
			last.after = append(last.after, next)
		}
		m.past[path] = append(slices.Clip(past), next)
	}
	m.rules = m.content(".gitignore")
}

// claim notes that a conversation said which paths it wrote.
func (m *ownership) claim(conv string, paths []string) {
	for _, path := range paths {
		past := m.past[path]
		if len(past) == 0 {
			continue
		}
		last := past[len(past)-1]
		w := m.atWork(last)
		if len(w) < 2 || !slices.Contains(w, conv) {
			continue
		}
		last.both = last.both || last.claimed != "" && last.claimed != conv
		last.claimed = cmp.Or(last.claimed, conv)
	}
}

// writers lists the conversations that may have written a version; the user did
// where there is none.
func (m *ownership) writers(v *version) []string {
	if v.claimed != "" {
		return []string{v.claimed}
	}
	return m.atWork(v)
}

// atWork lists the conversations that were at work when a version came.
func (m *ownership) atWork(v *version) []string {
	during := m.during[v.stretch]
	if len(during.open) == 0 {
		return nil // a killed one ended with its last checkpoint
	}
	out := slices.Concat(during.open, during.killed)
	slices.Sort(out)
	return slices.Compact(out)
}

// checkpoint makes one of a conversation's open turn.
func (m *ownership) checkpoint(turn *modelTurn, side Side) *Record {
	req := Request{Conversation: turn.conv, Turn: turn.number, Side: side, Auto: true}
	req.Holder = Holder{ID: fmt.Sprint(turn.process), Processes: []Process{{PID: turn.process}}}
	if side != Before && m.rnd.IntN(2) == 0 {
		req.Touched = slices.Sorted(maps.Keys(m.touched[turn.conv]))
		m.touched[turn.conv] = map[string]bool{}
	}
	rec := m.save(req)
	m.observe()
	m.claim(turn.conv, req.Touched)
	m.logf("%s: %s turn %d side %v touched %q", rec.Name(), turn.conv, turn.number, side, req.Touched)
	return rec
}

func (m *ownership) begin(conv string) {
	m.turns[conv]++
	turn := &modelTurn{conv: conv, number: m.turns[conv], process: len(m.alive) + 1}
	m.alive[turn.process] = true
	m.touched[conv] = map[string]bool{}
	rec := m.checkpoint(turn, Before)
	m.open[conv] = turn
	m.moments = append(m.moments, &moment{rec: rec, conv: conv, rules: m.content(".gitignore"), past: maps.Clone(m.past)})
}

func (m *ownership) end(conv string) {
	m.checkpoint(m.open[conv], After)
	delete(m.open, conv)
	delete(m.touched, conv)
}

func (m *ownership) kill(conv string) {
	m.logf("%s is killed", conv)
	m.alive[m.open[conv].process] = false
	m.killed = append(m.killed, conv)
	delete(m.open, conv)
	delete(m.touched, conv)
}

// toggle changes the ignore rules. Rules decide what is newly captured, never what
// stays captured, so they change only while no new file waits for a checkpoint, and
// fresh keeps new files out of their way.
func (m *ownership) toggle() {
	for _, path := range ownedPaths {
		if latest(m.past[path]) == "" && m.content(path) != "" {
			return
		}
	}
	rules := m.pick([]string{"nothing\n", "gen/\n", "log\n", "*\n!.gitignore\n"})
	m.logf("ignore %q", rules)
	m.write(".gitignore", rules)
}

// fresh reports whether writing a path would make a new file that a rule ignores.
func (m *ownership) fresh(path string) bool {
	if latest(m.past[path]) != "" {
		return false
	}
	return ignores(m.content(".gitignore"), path)
}

func ignores(rules, path string) bool {
	rule, _, _ := strings.Cut(rules, "\n")
	return rule == "*" || strings.HasPrefix(path, rule)
}

// wants says what a rewind of a conversation must leave at a path: what is there,
// or what the target has. It accepts both where the conversation wrote over a state
// that another one had taken back, where a rule kept a checkpoint from knowing whether
// there was a file, and where two conversations claim a version. Going forward again it
// accepts both over several rewinds, to a version that is known by a claim, and to one
// that another writer replaced later.
func (m *ownership) wants(conv, path string, to *moment) []string {
	now, then := m.past[path], to.past[path]
	common := 0
	for common < len(now) && common < len(then) && now[common] == then[common] {
		common++
	}
	present, target := latest(now), latest(then)
	undo := now[common:]
	for i, v := range undo {
		if v.content == target { // what came before no longer matters
			undo = now[common+i+1:]
		}
	}
	redo := then[common:]
	for i, v := range redo {
		if v.content == present {
			redo = then[common+i+1:]
		}
	}
	unsure := slices.ContainsFunc(undo, func(v *version) bool { return v.veiled || v.both })
	claimed := slices.ContainsFunc(redo, func(v *version) bool { return v.claimed != "" })
	undone, redone := m.owners(undo, conv), m.owners(redo, conv)
	replaced := m.replaced(then, conv)
	switch {
	case present == target, undone.others, redone.others && !undone.own && !replaced.own:
		return []string{present}
	case redone.others, unsure || target == "" && ignores(to.rules, path), redone.own && (claimed || replaced.others || m.moved[path] > 1):
		return []string{present, target}
	}
	return []string{target}
}

// replaced says who once replaced the last of these versions.
func (m *ownership) replaced(past []*version, conv string) owners {
	if len(past) == 0 {
		return owners{}
	}
	return m.owners(past[len(past)-1].after, conv)
}

func latest(past []*version) string {
	if len(past) == 0 {
		return ""
	}
	return past[len(past)-1].content
}

// owners says whether versions are of a conversation, of others, or of both.
type owners struct{ own, others bool }

func (m *ownership) owners(versions []*version, conv string) (o owners) {
	for _, v := range versions {
		if w := m.writers(v); len(w) == 1 && w[0] == conv {
			o.own = true
		} else {
			o.others = true
		}
	}
	return o
}

// rewind takes back a conversation's work, compares path by path, and sometimes
// undoes it.
func (m *ownership) rewind() {
	to := m.moments[m.rnd.IntN(len(m.moments))]
	before := testenv.Snapshot(m.t, m.dir)
	m.observe()
	m.logf("rewind %s to %s", to.conv, to.rec.Name())
	done, err := m.w.Rewind(m.t.Context(), RewindRequest{To: to.rec.ID}, "")
	if err != nil {
		m.failf("%v", err)
	}
	for _, a := range done.Plan.Actions {
		m.logf("  %s %s: %s %+v", a.Kind, a.Path, a.Reason, a.Writer)
	}
	for _, path := range ownedPaths {
		if want := m.wants(to.conv, path, to); !slices.Contains(want, m.content(path)) {
			m.failf("%s: the rewind left %q, want one of %q\n%s", path, m.content(path), want, m.story(path, to))
		}
	}
	for _, path := range ownedPaths {
		if m.content(path) != latest(m.past[path]) {
			m.moved[path]++
		}
	}
	if m.rnd.IntN(3) == 0 {
		m.undo(before)
		return
	}
	for _, path := range ownedPaths {
		if m.content(path) != latest(m.past[path]) {
			m.unmap(path) // it shows the file that was replaced
			m.past[path] = to.past[path]
		}
	}
	m.pass(1)
	m.rules = m.content(".gitignore")
}

func (m *ownership) undo(before map[string]string) {
	m.logf("undo")
	if err := undo(m.fixture); err != nil {
		m.failf("undo: %v", err)
	}
	if d := testenv.Differ(testenv.Snapshot(m.t, m.dir), before); len(d) > 0 {
		m.failf("after the undo:\n%s", strings.Join(d, "\n"))
	}
	for path := range m.mapped {
		m.unmap(path)
	}
	m.pass(3)
}

// pass notes checkpoints that saw no change of anybody's.
func (m *ownership) pass(n int) {
	for range n {
		m.during = append(m.during, stretch{})
	}
}

// story tells what the model knows about a path.
func (m *ownership) story(path string, to *moment) string {
	var b strings.Builder
	for _, past := range [][]*version{m.past[path], to.past[path]} {
		for _, v := range past {
			fmt.Fprintf(&b, "  %q in stretch %d by %q\n", strings.TrimSpace(v.content), v.stretch, m.writers(v))
		}
		fmt.Fprintln(&b, "  --")
	}
	return b.String()
}

func (m *ownership) failf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\n%s", strings.Join(m.trace, "\n"), fmt.Sprintf(format, args...))
}

// step does one thing at random.
func (m *ownership) step() {
	m.clock.advance(time.Duration(m.rnd.IntN(5000)) * time.Millisecond)
	conv := m.pick(ownerNames)
	turn := m.open[conv]
	switch how := m.rnd.IntN(100); {
	case how < 30 && turn != nil:
		m.change(conv)
	case how < 45:
		m.change("user")
	case how < 62 && turn == nil:
		m.begin(conv)
	case how < 62:
		m.checkpoint(turn, NoSide)
	case how < 75 && turn != nil:
		m.end(conv)
	case how < 80 && turn != nil:
		m.kill(conv)
	case how < 83:
		m.save(Request{})
		m.observe()
		m.logf("a checkpoint by hand")
	case how < 88:
		m.toggle()
	case how < 90:
		m.reopen()
	case how < 92:
		time.Sleep(5 * time.Millisecond) // so that stamps of before are old ones
	case how < 100 && len(m.moments) > 0:
		m.rewind()
	}
}

// Rewinds take back what the conversation wrote, all of it and nothing else,
// whatever overlaps, dies, hides its writes or changes the rules.
func TestRewindKnowsWhoseChangeItIs(t *testing.T) {
	const steps = 100
	for seed := range uint64(testenv.Sizes(20, 200, 5000)) {
		m := newOwnership(t, seed)
		m.logf("seed %d", seed)
		for range steps {
			m.step()
		}
		for path := range m.mapped {
			m.unmap(path)
		}
	}
}
