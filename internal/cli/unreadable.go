package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/conversation"
)

// unreadable names the conversations that a verb skipped because they cannot be read,
// after everything else is done; the exit code is 6.
func unreadable(list []conversation.Unreadable) error {
	errs := make([]error, len(list))
	for i, bad := range list {
		errs[i] = fmt.Errorf("%s: %w", printable(bad.ID), bad.Err)
	}
	return damageError("conversation", errs)
}

// unreadableCheckpoints is the same for checkpoints.
func unreadableCheckpoints(list []*checkpoint.UnreadableError) error {
	errs := make([]error, len(list))
	for i, bad := range list {
		errs[i] = bad
	}
	return damageError("checkpoint", errs)
}

// damageError names what cannot be read, or returns nil.
func damageError(what string, errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	const shown = 5
	var texts []string
	for i, err := range errs {
		if i == shown {
			texts = append(texts, fmt.Sprintf("and %d more", len(errs)-shown))
			break
		}
		texts = append(texts, printable(err.Error()))
	}
	return coded(ExitDamage, "%s cannot be read: %s; 'stet fsck' lists all damage, 'stet rm' removes a conversation, 'stet fsck --quarantine' sets damaged rows aside",
		plural(int64(len(errs)), what), strings.Join(texts, "; "))
}

// damageOnly separates errors about damaged conversations from errors that end a
// verb.
func damageOnly(err error) (damage, other error) {
	var known *codedError
	if err == nil || errors.As(err, &known) || !conversation.Damaged(err) {
		return nil, err
	}
	return err, nil
}
