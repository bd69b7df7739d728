package cli

import (
	"context"
	"fmt"

	"github.com/stet-dev/stet/checkpoint"
)

// atWorkText names a running turn: its command, or else its conversation.
func (a *app) atWorkText(t *checkpoint.Turn) string {
	turn := "of " + a.short(t.Conversation)
	if t.Number > 0 {
		turn = fmt.Sprintf("turn %d %s", t.Number, turn)
	}
	since := "since " + when(t.Since, now())
	if command := commandOf(t); command != nil {
		return fmt.Sprintf("%s (pid %d), %s, %s", clip(command.Command, 60), command.PID, turn, since)
	}
	return fmt.Sprintf("%s, %s, last checkpoint %s", turn, since, when(t.Seen, now()))
}

// commandOf returns the process that does the work, or nil.
func commandOf(t *checkpoint.Turn) *checkpoint.Process {
	living := t.Living()
	if len(living) == 0 {
		return nil
	}
	return &living[len(living)-1] // a run records its command after itself
}

// isLeft reports whether the 'stet run' of a running command was killed.
func isLeft(t *checkpoint.Turn) bool {
	held, living := t.Holder.Processes, t.Living()
	return len(living) > 0 && held[0].Command == runName && living[0].Command != runName
}

// atWorkMeaning explains to the user what running turns mean.
func atWorkMeaning(open checkpoint.Turns) string {
	switch {
	case len(open) > 1:
		return "a rewind skips files that change while several are active, unless you name them"
	case isLeft(&open[0]):
		return "its 'stet run' was killed; changes here count as its work until it ends, and 'stet checkpoint' saves them"
	}
	return "changes here count as its work until it ends"
}

// tellAtWork names the running turns before another one begins.
func (a *app) tellAtWork(ctx context.Context, p *place) error {
	open, err := p.space.AtWork(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	for i := range open {
		left := ""
		if isLeft(&open[i]) {
			left = "; its 'stet run' was killed"
		}
		a.say("stet: also active here: %s%s", a.atWorkText(&open[i]), left)
	}
	a.say("stet: a rewind skips files that change while several are active, unless you name them")
	return nil
}
