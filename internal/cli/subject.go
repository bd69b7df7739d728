package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/stet-dev/stet/checkpoint"
)

// kind is what a name may stand for, and the verb that lists everything of that kind.
type kind struct{ noun, list string }

var (
	aCheckpoint   = kind{"checkpoint", "'stet log --all'"}
	aConversation = kind{"conversation", "'stet ls'"}
	anAgent       = kind{"agent", "'stet ls --agents'"}
)

// nothingNamed says that a name stands for nothing of some kinds, and where to look.
func nothingNamed(name string, kinds ...kind) error {
	var nouns, lists []string
	for _, k := range kinds {
		nouns, lists = append(nouns, k.noun), append(lists, k.list)
	}
	verb := "lists"
	if len(lists) > 1 {
		verb = "list"
	}
	return coded(ExitNotFound, "no %s %q; %s %s all", strings.Join(nouns, " or "), name, strings.Join(lists, " and "), verb)
}

// subject is what a verb is about that takes a checkpoint or a conversation: either of
// them, or the workspace now if it is neither.
type subject struct {
	checkpoint   *checkpoint.Record
	conversation string
}

// subject finds what a reference names.
func (a *app) subject(ctx context.Context, p *place, ref string) (subject, error) {
	conv, err := a.known(ctx, p)
	if err != nil {
		return subject{}, err
	}
	if id := asPrinted(ctx, p.db, ref); id != "" {
		return subject{conversation: id}, nil
	}
	rec, err := p.space.Resolve(ctx, ref, conv)
	if !orConversation(err) {
		return subject{checkpoint: rec}, err
	}
	id, convErr := conversationID(ctx, p.db, ref)
	switch {
	case convErr == nil:
		return subject{conversation: id}, nil
	case errors.Is(err, checkpoint.ErrAmbiguous):
		return subject{}, err
	case absentName(convErr):
		return subject{}, nothingNamed(ref, aCheckpoint, aConversation)
	}
	return subject{}, convErr
}

// absentName reports whether an error says that nothing has a name.
func absentName(err error) bool {
	var known *codedError
	return errors.As(err, &known) && known.code == ExitNotFound
}
