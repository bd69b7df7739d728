package foreign

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/stet-dev/stet/fault"
)

// Adapter translates one agent. Its methods are safe for concurrent use. An adapter
// skips what it does not understand: agents change their formats without notice, and
// the raw record is kept beside what was understood.
type Adapter interface {
	// Name is the agent's name on the command line and in conversations, such as
	// "claude-code". It consists of lower-case letters, digits and hyphens.
	Name() string

	// Detect looks for the agent on a computer. It runs no program.
	Detect(ctx context.Context, h Host) (Installation, error)

	// Sessions returns the sessions that the agent keeps on a computer, subagents after
	// the sessions that started them. It reads as little as it can. For a record that
	// cannot be read it yields an error that wraps ErrUnreadable and continues; any
	// other error is the last.
	Sessions(ctx context.Context, h Host) iter.Seq2[Session, error]

	// SessionAt returns the session that a path holds, and its subagents, for a path
	// named by an event or a person.
	SessionAt(ctx context.Context, h Host, path string) iter.Seq2[Session, error]

	// Turns returns the turns of a session from a mark on, in the order in which they
	// happened. The first one after a mark follows the turn before the mark if its
	// Follows is empty. For a part that cannot be read it yields an error that wraps
	// ErrUnreadable and continues. If the mark does not fit this record, because the
	// record was replaced or because a turn needs one before the mark, the last error is
	// ErrMark, and the caller reads from the beginning. A torn last line is not an
	// error: it is still being written.
	Turns(ctx context.Context, s Session, from Mark) iter.Seq2[Turn, error]

	// Files returns the raw record of a session, without its subagents' records, in an
	// order that does not change when the session grows.
	Files(ctx context.Context, s Session) iter.Seq2[File, error]

	// Cut prepares a conversation that continues after a turn. The session stays as it
	// is, byte for byte. A session or turn that cannot be cut gives ErrCannotCut with the
	// reason.
	Cut(ctx context.Context, h Host, s Session, after Turn) (Continuation, error)

	// Connection returns the changes of files that make the agent report events by
	// running a command. The command gets one more argument: the event's name.
	Connection(h Host, c Connect) ([]Change, error)

	// Tools returns the changes of files that make the agent start a server of the Model
	// Context Protocol, whose tools it can then use. The command is the whole server.
	// The result is nil for an agent without such servers.
	Tools(h Host, c Connect) ([]Change, error)

	// Skips says why the agent does not run the hooks of Connection although they are in
	// its settings, and what the user can do. It is "" if nothing is known to prevent
	// that. It reads settings and runs no program.
	Skips(h Host, c Connect) (string, error)

	// Event decodes the payload of a hook. An event that means nothing to stet has the
	// kind NoEvent.
	Event(name string, payload []byte) (Event, error)

	// Notice returns the output of a TurnStart hook that shows the model a line of text
	// with the prompt. It is nil if the agent's hooks cannot do that.
	Notice(text string) []byte
}

// Cleaner is implemented by adapters of agents that delete old sessions by
// themselves.
type Cleaner interface {
	// Cleanup returns how long the agent keeps a session after its last change.
	Cleanup(h Host) time.Duration
}

// Switched is implemented by adapters of agents that have a setting which disables all
// hooks.
type Switched interface {
	// Off says which setting disables the hooks, and is "" if none does. Earlier events
	// do not prove the opposite: the agent may have read its settings before, or have run
	// in another directory.
	Off(h Host, c Connect) string
}

// Installation is an agent on a computer.
type Installation struct {
	// Found means that the program or its settings exist.
	Found bool
	// Program is the path of the program, "" if only its files exist.
	Program string
	// Version is "" if it cannot be found without running the program.
	Version string
	// Settings is the file or directory that Connection changes for the user.
	Settings string
}

// Continuation is how a person continues after a cut.
type Continuation struct {
	// Session is the id of the new session, "" if the agent makes it when it starts.
	Session string
	// Prepare is a command that has to run once before Command, in the same directory,
	// nil if there is none. An agent that keeps its sessions in a database imports a cut
	// one with it.
	Prepare []string
	// Command is the program and its arguments. Env lists environment variables that
	// must be set.
	Command []string
	Env     []string
	// Dir is the directory in which the command must run.
	Dir string
	// Created are the files that Cut made. Removing them undoes the cut.
	Created []string
}

// Errors of adapters.
var (
	// ErrUnreadable reports a part of a session that cannot be read.
	ErrUnreadable = fault.New(fault.Damaged, "unreadable session")
	// ErrMark reports a mark that does not belong to this record.
	ErrMark = fault.New(fault.Stale, "the session was rewritten")
	// ErrCannotCut reports a conversation that cannot be continued after a turn.
	ErrCannotCut = fault.New(fault.Unsupported, "cannot continue after this turn")
	// ErrSettings reports settings that stet does not change.
	ErrSettings = fault.New(fault.Conflict, "settings cannot be changed")
	// ErrEvent reports a hook payload that this agent does not send.
	ErrEvent = fault.New(fault.Invalid, "unknown event")
	// ErrUnknownAgent reports a name that no adapter has.
	ErrUnknownAgent = fault.New(fault.NotFound, "unknown agent")
	// ErrImportOnly reports a program whose conversations stet can import but neither
	// connect nor continue.
	ErrImportOnly = fault.New(fault.Unsupported, "stet only imports from this program")
)

// Unreadable reports whether an error concerns only a part of what is read.
func Unreadable(err error) bool { return errors.Is(err, ErrUnreadable) }
