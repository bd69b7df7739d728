package sqlite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// memoryDir returns a directory in memory where there is one.
func memoryDir(t testing.TB) string {
	t.Helper()
	return testenv.TempDir(t)
}

// examiner opens images and keeps what it found, since many mean the same.
type examiner struct {
	h       *history
	rng     *rand.Rand
	effects map[uint64]*found // by effect
	seen    map[uint64]*found // by hash
	opened  int
	dir     string
}

func newExaminer(t testing.TB, h *history, seed uint64) *examiner {
	return &examiner{
		h: h, dir: memoryDir(t), rng: rand.New(rand.NewPCG(seed, 78)),
		effects: make(map[uint64]*found), seen: make(map[uint64]*found),
	}
}

// examine tells what a store finds in an image. Images that differ only in what
// recovery must ignore are opened one time in sampling, and must then give the
// same; a long run opens them all.
func (e *examiner) examine(img image) *found {
	const sampling = 20
	hash := img.hash()
	if f := e.seen[hash]; f != nil {
		return f
	}
	if wrong, err := img.wrongLog(); wrong != "" || err != nil {
		return &found{err: fmt.Errorf("the log is refused: %s, %v", wrong, err)}
	}
	effect := img.effect()
	f := e.effects[effect]
	if f == nil || testenv.Long() || e.rng.IntN(sampling) == 0 {
		again := e.open(img)
		if f != nil && again.err == nil && !f.equal(again) {
			again.err = errors.New("images that mean the same hold different things")
		}
		f = again
		e.effects[effect] = f
	}
	e.seen[hash] = f
	return f
}

// open puts an image on disk, opens it and looks at everything.
func (e *examiner) open(img image) *found {
	e.opened++
	dir := filepath.Join(e.dir, fmt.Sprint(e.opened))
	defer os.RemoveAll(dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return &found{err: err}
	}
	if err := img.write(dir); err != nil {
		return &found{err: err}
	}
	return e.openDir(dir, &Options{ObjectSize: crashObjectSize, Readers: 1})
}

func (e *examiner) openDir(dir string, opts *Options) *found {
	db, err := Open(context.Background(), dir, opts)
	if err != nil {
		return &found{err: err}
	}
	f := e.h.look(db)
	if err := db.Close(); err != nil && f.err == nil {
		f.err = err
	}
	return f
}

func (f *found) equal(other *found) bool {
	return maps.Equal(f.rows, other.rows) && maps.Equal(f.blobs, other.blobs)
}

// damages returns n ways to lose what was not synced.
func damages(rng *rand.Rand, n int) []damage {
	all := []damage{{}, {keep: 1, names: 1}}
	for len(all) < n {
		all = append(all, damage{
			rng:   rng,
			keep:  []float64{0, 0.2, 0.5, 0.8, 0.95, 1}[rng.IntN(6)],
			names: []float64{0, 0, 0, 0.5, 1, 1, 1}[rng.IntN(7)],
		})
	}
	return all[:n]
}

func TestPowerLoss(t *testing.T) {
	t.Parallel()
	const perPoint = 4
	want := testenv.Sizes(1_000, 25_000, 500_000)
	var mu sync.Mutex // guards the counts
	images, opened, points := 0, 0, 0
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return images >= want || t.Failed()
	}
	var wg sync.WaitGroup
	for worker := range uint64(2) {
		wg.Go(func() {
			for seed := worker; !enough(); seed += 2 {
				rec := newRecorder(t, memoryDir(t))
				e := newExaminer(t, work(t, rec, seed, 2, 10), seed)
				n, p := losePower(t, e, rec, seed, perPoint)
				mu.Lock()
				images, opened, points = images+n, opened+e.opened, points+p
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d images, %d of them opened, at %d points", images, opened, points)
}

// losePower cuts a record at every point and examines what is left.
func losePower(t *testing.T, e *examiner, rec *recorder, seed uint64, perPoint int) (images, points int) {
	p := newPlatter()
	rng := rand.New(rand.NewPCG(seed, 77))
	for position, c := range rec.changes {
		p.apply(c)
		if c.op == opMark || isShard(c) {
			continue
		}
		points++
		for i, d := range damages(rng, perPoint) {
			images++
			if err := e.h.check(e.examine(p.image(d)), position+1); err != nil {
				t.Errorf("seed %d, power lost after change %d of %d (%s %s), damage %d: %v",
					seed, position, len(rec.changes), c.op, c.path, i, err)
				return images, points
			}
		}
	}
	return images, points
}
