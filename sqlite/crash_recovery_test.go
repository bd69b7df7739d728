package sqlite

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stet-dev/stet/internal/testenv"
)

// TestPowerLossDuringRecovery cuts the power again at every point of the opening
// that follows a power loss.
func TestPowerLossDuringRecovery(t *testing.T) {
	want := testenv.Scale(2_000, 50_000)
	images, recoveries, opened := 0, 0, 0
	for seed := uint64(1000); images < want && !t.Failed(); seed++ {
		rec := newRecorder(t, memoryDir(t))
		e := newExaminer(t, work(t, rec, seed, 2, 6), seed)
		rng := rand.New(rand.NewPCG(seed, 79))
		p := newPlatter()
		for position, c := range rec.changes {
			p.apply(c)
			if c.op == opMark || rng.IntN(40) != 0 {
				continue
			}
			recoveries++
			first := p.image(damage{rng: rng, keep: 0.9, names: 1})
			images += recoverTwice(t, e, first, position+1, rng)
			if t.Failed() || images >= want {
				break
			}
		}
		opened += e.opened
	}
	t.Logf("%d images, %d of them opened, of %d recoveries", images, opened, recoveries)
}

// recoverTwice records the recovery of an image and loses power at each of its
// changes.
func recoverTwice(t *testing.T, e *examiner, first image, position int, rng *rand.Rand) (images int) {
	dir := filepath.Join(e.dir, "recovery")
	defer os.RemoveAll(dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := first.write(dir); err != nil {
		t.Fatal(err)
	}
	rec := newRecorder(t, dir)
	p := platterOf(first, rec)
	if err := e.h.check(e.openDir(dir, rec.options()), position); err != nil {
		t.Errorf("recovery after change %d: %v", position, err)
		return 0
	}
	for at, c := range rec.changes {
		p.apply(c)
		for _, d := range damages(rng, 3) {
			images++
			if err := e.h.check(e.examine(p.image(d)), position); err != nil {
				t.Errorf("power lost again after change %d (%s %s) of the recovery from change %d: %v", at, c.op, c.path, position, err)
				return images
			}
		}
	}
	return images
}
