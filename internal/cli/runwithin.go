package cli

import (
	"slices"

	"github.com/stet-dev/stet/checkpoint"
)

// maxAbove limits how far above a process its ancestors are looked for.
const maxAbove = 32

// waitsFor reports whether an open turn is that of a living run whose command started an
// agent, as npx, a shell or a script does, and does nothing else meanwhile, as far as its
// processes show: something that runs beside the agent may change files, too. A command that
// is the agent itself needs no search, see checkpoint.Turns.Observe.
func waitsFor(t *checkpoint.Turn, agent int) bool {
	held := t.Holder.Processes
	if len(held) < 2 || held[0].Command != runName || held[0].Life() != checkpoint.Alive || held[1].Life() != checkpoint.Alive {
		return false
	}
	above, err := processesAbove()
	if err != nil {
		return false
	}
	between := ancestors(above, agent, held[1].PID)
	if len(between) == 0 {
		return false
	}
	for pid, parent := range above {
		if slices.Contains(between, parent) && pid != agent && !slices.Contains(between, pid) {
			return false
		}
	}
	return true
}

// ancestors lists the processes above one, up to a process that is among them. Otherwise it
// returns nil.
func ancestors(above map[int]int, pid, upTo int) []int {
	var out []int
	for range maxAbove {
		if pid = above[pid]; pid <= 1 {
			return nil
		}
		if out = append(out, pid); pid == upTo {
			return out
		}
	}
	return nil
}
