package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
	"github.com/stet-dev/stet/foreign/intake"
)

// importAgent copies the sessions of an agent. A dry run says what an import into an empty
// store would do.
func (a *app) importAgent(ctx context.Context, args []string, flags importFlags) error {
	adapter, err := agents.FindImportable(flags.from)
	if err != nil {
		return usage(err)
	}
	host, err := foreign.ThisHost()
	if err != nil {
		return err
	}
	if flags.rescue {
		return usage(errors.New("--rescue is only for cursor; sessions of other agents are always read as far as possible"))
	}
	found, err := a.agentSessions(ctx, adapter, host, args, flags)
	if err != nil {
		return err
	}
	totals, err := a.copySessions(ctx, adapter, found, flags)
	if err == nil && len(args)+len(flags.only) == 0 && !flags.dryRun {
		err = a.wantedEarlier(adapter.Name(), totals.Damaged())
	}
	value := agentImported(adapter, totals, flags.dryRun)
	for i := range value.Skipped {
		if s := &value.Skipped[i]; s.Key == "" && len(args) > 0 { // no session could be read there
			s.Key = args[0]
		}
	}
	if err = errors.Join(err, a.print(value, a.agentImportText(value))); err == nil && value.Damaged > 0 {
		return silentExit{ExitDamage}
	}
	return err
}

// copySessions copies sessions into the store, or counts them, and shows progress.
func (a *app) copySessions(ctx context.Context, adapter foreign.Adapter, found *foundSessions, flags importFlags) (totals intake.Totals, err error) {
	bar := a.progress("importing", max(1, found.bytes))
	show := func(t intake.Totals) { _ = bar.Set64(t.Read) } // display only
	defer func() { _ = bar.Finish() }()
	if flags.dryRun {
		return intake.Count(ctx, adapter, found.all(), show)
	}
	a.cache, a.compactLater = importCache, true
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(importMemory)
	}
	err = a.withStore(ctx, true, func(db *stet.DB) error {
		var failed error
		in := intake.New(db.Blobs(), db.Rows(), adapter)
		if flags.again {
			in.Again(flags.purged)
		}
		totals, err = in.Sessions(ctx, found.all(), func(t intake.Totals) {
			show(t)
			failed = errors.Join(failed, a.compactMuch(ctx, db))
		})
		return errors.Join(err, failed)
	})
	return totals, err
}

// compactMuch keeps a store small while much is imported. Compressing takes as long as the
// import, and as much memory again, so that a process in the background does it, now and
// after the verb; where there can be none, it is done here.
func (a *app) compactMuch(ctx context.Context, db *stet.DB) error {
	const much = 256 << 20
	if db.Uncompacted()-a.compacted < much {
		return nil
	}
	a.compacted = db.Uncompacted()
	dir, err := a.storeDir()
	if err == nil && a.background && !a.asked {
		_ = a.leaveBehind(dir) // see compactAfter
		return nil
	}
	a.compacted = 0
	if debug.SetMemoryLimit(-1) == importMemory {
		debug.SetMemoryLimit(compactMemory)
		defer debug.SetMemoryLimit(importMemory)
	}
	return db.Compact(ctx, nil)
}

// agentImported describes what an import did.
func agentImported(adapter foreign.Adapter, totals intake.Totals, dryRun bool) agentImportJSON {
	value := agentImportJSON{
		Schema: "stet.import.agent.v1", Agent: adapter.Name(), DryRun: dryRun, Sessions: totals.Sessions,
		Conversations: totals.Conversations, Turns: totals.Turns, Read: totals.Read, Stored: totals.Stored,
		Damaged: totals.Damaged(), Skipped: []skippedJSON{}, Removed: totals.Removed, Purged: totals.Purged,
	}
	for _, s := range totals.Skipped {
		value.Skipped = append(value.Skipped, skippedJSON{s.Session, s.Reason, s.Damage})
	}
	return value
}

// importCache is how much a store holds in memory during an import: it reads back only the
// state to which it adds a turn.
const importCache = 4 << 20

// importMemory is the memory from which an import collects garbage more often. Live are
// about 20 MiB, whatever the size of the sessions. What the database takes comes on top.
const importMemory = 40 << 20

// compactMemory is the same while an import compacts: compressors take about 15 MiB more.
const compactMemory = 50 << 20

type agentImportJSON struct {
	Schema        string        `json:"schema"`
	Agent         string        `json:"agent"`
	DryRun        bool          `json:"dry_run"`
	Sessions      int           `json:"sessions"`
	Conversations int           `json:"conversations"`
	Turns         int           `json:"turns"`
	Read          int64         `json:"read_bytes"`
	Stored        int64         `json:"stored_bytes"`
	Damaged       int           `json:"damaged"`
	Skipped       []skippedJSON `json:"skipped"`
	Removed       int           `json:"removed,omitempty"`  // sessions that stay so
	Purged        int           `json:"purged,omitempty"`   // likewise
	Expiring      int           `json:"expiring,omitempty"` // of connect
}

func (a *app) agentImportText(v agentImportJSON) string {
	p := a.paint()
	verb := "imported"
	if v.DryRun {
		verb = "would import"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s with %s from %s of %s (%s read, %s new)\n", verb, plural(int64(v.Conversations), "conversation"),
		plural(int64(v.Turns), "turn"), plural(int64(v.Sessions), "session"), v.Agent, byteSize(v.Read), byteSize(v.Stored))
	for _, s := range v.Skipped {
		mark := p.dim("skipped")
		if s.Damage {
			mark = p.red("damaged")
		}
		what := printable(s.Reason)
		if s.Key != "" {
			what = printable(s.Key) + ": " + what
		}
		fmt.Fprintf(&text, "%s  %s\n", mark, what)
	}
	if v.Removed > 0 {
		fmt.Fprintf(&text, "%s  %s removed here before; --again copies %s\n", p.dim("skipped"), wereSessions(v.Removed), itOrThem(v.Removed))
	}
	if v.Purged > 0 {
		fmt.Fprintf(&text, "%s  %s left alone because content was purged from %s here, which the agent's record may still have; "+
			"--again --purged copies that, too\n", p.dim("skipped"), wereSessions(v.Purged), itOrThem(v.Purged))
	}
	return text.String()
}

func wereSessions(n int) string {
	if n == 1 {
		return "1 session was"
	}
	return fmt.Sprintf("%d sessions were", n)
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// foundSessions are the sessions that an import copies.
type foundSessions struct {
	list   []foreign.Session
	errs   []error
	bytes  int64
	others int // sessions that were not asked for
}

func (f *foundSessions) all() iter.Seq2[foreign.Session, error] {
	return func(yield func(foreign.Session, error) bool) {
		for _, err := range f.errs {
			if !yield(foreign.Session{}, err) {
				return
			}
		}
		for _, s := range f.list {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// agentSessions finds the sessions at a path, or all of them, and asks before it takes
// all.
func (a *app) agentSessions(ctx context.Context, adapter foreign.Adapter, host foreign.Host, args []string, flags importFlags) (*foundSessions, error) {
	sessions := adapter.Sessions(ctx, host)
	if len(args) > 0 {
		path, err := filepath.Abs(args[0])
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); err != nil {
			return nil, coded(ExitNotFound, "%w", err)
		}
		sessions = adapter.SessionAt(ctx, host, path)
	}
	found, err := findSessions(sessions, flags.only)
	if err != nil {
		return nil, err
	}
	if len(found.list) == 0 && found.others > 0 {
		return nil, noneSelected(flags.only, plural(int64(found.others), "session"), adapter.Name(), args)
	}
	if len(found.list)+len(found.errs) == 0 {
		return nil, a.nothingOf(ctx, adapter, host, args)
	}
	if len(args) > 0 || flags.dryRun {
		return found, nil
	}
	return found, a.agreed(ctx, flags.sure, fmt.Sprintf("Import %s of %s (%s)?", plural(int64(len(found.list)), "session"), adapter.Name(), byteSize(found.bytes)))
}

func findSessions(sessions iter.Seq2[foreign.Session, error], only []string) (*foundSessions, error) {
	found := &foundSessions{}
	for s, err := range sessions {
		switch {
		case foreign.Unreadable(err):
			found.errs = append(found.errs, err)
		case err != nil:
			return nil, err
		case wantedSession(s, only):
			found.list, found.bytes = append(found.list, s), found.bytes+s.Size
		default:
			found.others++
		}
	}
	return found, nil
}

func wantedSession(s foreign.Session, only []string) bool {
	if len(only) == 0 {
		return true
	}
	for _, prefix := range only {
		if strings.HasPrefix(s.ID, prefix) {
			return true
		}
	}
	return false
}

// noneSelected says that --only selects nothing of what is there.
func noneSelected(only []string, there, source string, args []string) error {
	quoted := make([]string, len(only))
	for i, id := range only {
		quoted[i] = strconv.Quote(id)
	}
	where := "here"
	if len(args) > 0 {
		where = "in " + printable(args[0])
	}
	return coded(ExitNotFound, "--only selects nothing: of %s of %s %s, none has an id that begins with %s", there, source, where, strings.Join(quoted, " or "))
}

// nothingOf says where was looked.
func (a *app) nothingOf(ctx context.Context, adapter foreign.Adapter, host foreign.Host, args []string) error {
	if len(args) > 0 {
		return coded(ExitNotFound, "%s: no session of %s", printable(args[0]), adapter.Name())
	}
	at, err := adapter.Detect(ctx, host)
	if err != nil {
		return err
	}
	if !at.Found {
		return coded(ExitNotFound, "%s was not found here (looked in %s); pass a PATH", adapter.Name(), printable(tilde(filepath.Dir(at.Settings))))
	}
	return coded(ExitNotFound, "%s has no sessions here (looked in %s); pass a PATH", adapter.Name(), printable(tilde(filepath.Dir(at.Settings))))
}
