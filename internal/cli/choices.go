package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-dev/stet/checkpoint"
)

// way is a way out of a conflict: a flag, or an answer to the question about it.
type way struct {
	choice  checkpoint.Choice
	flag    string
	answers []string // on a terminal; the letter first
	offer   string   // how the question says it
}

// ways are all of them, in the order of the question. The first one is the default.
var ways = []way{
	{checkpoint.KeepMine, "--keep-mine", []string{"k", "keep"}, "[K]eep yours"},
	{checkpoint.Theirs, "--theirs", []string{"c", "checkpoint", "t", "theirs"}, "take the [c]heckpoint's"},
	{checkpoint.Merge, "--merge", []string{"m", "merge"}, "[m]erge"},
	{checkpoint.MergeMarkers, "--markers", []string{"x", "markers"}, "merge with [x] conflict markers"},
}

// waysOut lists what resolves a conflict. A single turn, for example, has no checkpoint to
// take a file from. Markers are offered where lines do not merge without.
func waysOut(conflict *checkpoint.ConflictError) []way {
	return slices.DeleteFunc(slices.Clone(ways), func(w way) bool {
		return !conflict.ResolvedBy(w.choice) || w.choice == checkpoint.MergeMarkers && conflict.ResolvedBy(checkpoint.Merge)
	})
}

// wayOut names the flags that resolve a conflict.
func wayOut(conflict *checkpoint.ConflictError) string {
	var flags []string
	for _, w := range waysOut(conflict) {
		flags = append(flags, w.flag)
	}
	return oneOfThese(flags)
}

// chooseAll asks how to resolve each conflict. What cannot be done is not offered.
func (a *app) chooseAll(ctx context.Context, plan *checkpoint.Plan, choices map[string]checkpoint.Choice) error {
	for i := range plan.Actions {
		act := &plan.Actions[i]
		if act.Kind != checkpoint.Conflict || choices[act.Path] == checkpoint.KeepMine {
			continue
		}
		about := printable(act.Path)
		if act.NoMerge != "" {
			about += " cannot be merged, because " + act.NoMerge
		}
		ways := waysOut(&checkpoint.ConflictError{Paths: []string{act.Path}, Plan: plan})
		var offers, letters []string
		for _, w := range ways {
			offers, letters = append(offers, w.offer), append(letters, w.answers[0])
		}
		answer, err := a.readLine(ctx, about+": "+oneOfThese(offers)+"? ")
		if err != nil {
			return err
		}
		chosen := slices.IndexFunc(ways, func(w way) bool { return slices.Contains(w.answers, answer) })
		switch {
		case answer == "":
			chosen = 0
		case chosen < 0:
			return coded(ExitUsage, "invalid answer %q, want %s; nothing was changed", answer, oneOfThese(letters))
		}
		choices[act.Path] = ways[chosen].choice
	}
	return nil
}

// oneOfThese writes "a", "a or b", "a, b or c".
func oneOfThese(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return fmt.Sprintf("%s or %s", strings.Join(words[:last], ", "), words[last])
}
