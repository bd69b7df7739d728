package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/agents"
)

// soon is the time within which a session that its agent deletes is counted.
const soon = 7 * 24 * time.Hour

// importEarlier offers to copy the sessions that agents have from before they were
// connected. It asks once for all of them.
func (a *app) importEarlier(ctx context.Context, names []string, sure bool) error {
	host, err := foreign.ThisHost()
	if err != nil {
		return err
	}
	var wanted []foreign.Adapter
	var found []*foundSessions
	sessions, bytes := 0, int64(0)
	for _, name := range names {
		adapter, err := agents.Find(name)
		if err != nil {
			return err
		}
		f, err := findSessions(adapter.Sessions(ctx, host), nil)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(f.list) > 0 {
			wanted, found = append(wanted, adapter), append(found, f)
			sessions, bytes = sessions+len(f.list), bytes+f.bytes
		}
	}
	if sessions == 0 {
		return nil
	}
	if !sure {
		answer, err := a.readLine(ctx, fmt.Sprintf("Import %s (%s)? [Y/n] ", plural(int64(sessions), "earlier session"), byteSize(bytes)))
		if err != nil {
			return err
		}
		if answer != "" && answer != "y" && answer != "yes" {
			var errs []error
			for _, adapter := range wanted {
				a.say("later: stet import --from %s", adapter.Name())
				errs = append(errs, a.declineEarlier(adapter.Name()))
			}
			return errors.Join(errs...)
		}
	}
	var errs []error
	for i, adapter := range wanted {
		errs = append(errs, a.importOf(ctx, adapter, host, found[i]))
	}
	return errors.Join(errs...)
}

// earlierOf deals with the sessions of agents from before they were connected. Those of
// agents that are connected for a project only are left alone.
func (a *app) earlierOf(ctx context.Context, names []string, flags connectFlags) error {
	if !flags.noImport && !flags.project {
		return a.importEarlier(ctx, names, flags.sure)
	}
	var errs []error
	for _, name := range names {
		path, err := a.earlierPath(name)
		if err == nil && (flags.noImport || !fileExists(path)) {
			err = a.declineEarlier(name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// importOf copies the earlier sessions of one agent and prints one line.
func (a *app) importOf(ctx context.Context, adapter foreign.Adapter, host foreign.Host, found *foundSessions) error {
	totals, err := a.copySessions(ctx, adapter, found, importFlags{})
	if err != nil {
		return fmt.Errorf("%s is connected, but some earlier sessions were not imported; run 'stet import --from %s' to resume: %w", adapter.Name(), adapter.Name(), err)
	}
	if err := a.wantedEarlier(adapter.Name(), totals.Damaged()); err != nil {
		return err
	}
	value := agentImported(adapter, totals, false)
	value.Expiring = expiring(adapter, host, found.list, now())
	text := fmt.Sprintf("%s  %s  imported %s (%s read, %s new)", a.paint().green("ok"), pad(adapter.Name(), 12),
		plural(int64(value.Sessions), "earlier session"), byteSize(value.Read), byteSize(value.Stored))
	if value.Expiring > 0 {
		text += fmt.Sprintf("; %s deletes %d of them within a week", adapter.Name(), value.Expiring)
	}
	if value.Damaged > 0 {
		text += fmt.Sprintf("; %s cannot be read: 'stet import --from %s' lists them", plural(int64(value.Damaged), "part"), adapter.Name())
	}
	return a.print(value, text+"\n")
}

// expiring counts the sessions that their agent deletes soon.
func expiring(adapter foreign.Adapter, host foreign.Host, list []foreign.Session, at time.Time) (n int) {
	cleaner, ok := adapter.(foreign.Cleaner)
	if !ok {
		return 0
	}
	before := at.Add(soon - cleaner.Cleanup(host))
	for _, s := range list {
		if s.Parent == "" && !s.Updated.IsZero() && s.Updated.Before(before) {
			n++
		}
	}
	return n
}
