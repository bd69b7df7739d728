package recorder

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/foreign"
	"github.com/stet-dev/stet/foreign/spool"
)

// interrupted captures what the edit tools wrote in a turn without a checkpoint after
// it. A file that was changed after its tool reported is not only the turn's.
func (r *Recorder) interrupted(ctx context.Context, space *checkpoint.Workspace, t checkpoint.Turn, events spool.Turn, e foreign.Event, req checkpoint.Request) error {
	own, _ := r.written(space.Path(), e.Workspace, events)
	if len(own) == 0 {
		return nil
	}
	req.Side, req.Turn, req.MessageID = checkpoint.NoSide, t.Number, t.MessageID
	req.Touched, req.Paths, req.Auto = own, own, false
	_, err := space.Checkpoint(ctx, req)
	return err
}

// written returns the paths that the edit tools of a turn wrote last, and those that
// something changed after its tool reported: another agent, the user, or a command of the
// turn itself.
func (r *Recorder) written(root, dir string, events spool.Turn) (own, shared []string) {
	last := map[string]write{}
	for _, entry := range events.Events {
		paths, deleted := r.edited(root, dir, entry)
		for _, path := range paths {
			last[path] = write{entry.Time, deleted}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(last)) {
		if last[path].stands(root, path) {
			own = append(own, path)
		} else {
			shared = append(shared, path)
		}
	}
	return own, shared
}

// write is what an edit tool reported of a path.
type write struct {
	at      time.Time
	deleted bool
}

// stands reports whether nothing changed a path after its tool reported. Whatever removed
// the path later changed a directory above it.
func (w write) stands(root, path string) bool {
	full := filepath.Join(root, filepath.FromSlash(path))
	info, err := os.Lstat(full)
	if w.deleted && errors.Is(err, fs.ErrNotExist) {
		return true
	}
	for errors.Is(err, fs.ErrNotExist) && full != root {
		full = filepath.Dir(full)
		info, err = os.Lstat(full)
	}
	return err == nil && !info.ModTime().After(w.at)
}

// beside returns a function that lists the conversations with work in a workspace
// whose beginning the store does not have, because a hook was killed or is late. The
// checkpoints of other turns must not claim that work.
func (r *Recorder) beside(space *checkpoint.Workspace, e foreign.Event) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		since, err := scanned(ctx, space)
		if err != nil {
			return nil, err
		}
		workers, err := spool.Unrecorded(ctx, r.Spool, since, time.Now())
		if ctx.Err() != nil {
			return nil, err
		}
		var out []string
		for _, w := range workers {
			in := slices.ContainsFunc(w.Workspaces, func(dir string) bool { return Inside(space.Path(), dir) })
			if in && w.Session != e.Session {
				out = append(out, w.Session)
			}
		}
		own, err := r.ownWork(ctx, e)
		if own {
			out = append(out, e.Session)
		}
		return out, err
	}
}

// scanned returns a time before which the latest checkpoint saw everything: its scan began
// after the checkpoint before it was made.
func scanned(ctx context.Context, space *checkpoint.Workspace) (time.Time, error) {
	var at time.Time
	n := 0
	for rec, err := range space.List(ctx, nil) {
		if err != nil {
			return time.Time{}, err
		}
		if n++; n == 2 {
			at = rec.Time
			break
		}
	}
	return at, nil
}

// ownWork reports whether the session itself worked since its last checkpoint
// although the store has no turn for that: before a prompt that was lost, or since
// one that is late.
func (r *Recorder) ownWork(ctx context.Context, e foreign.Event) (bool, error) {
	current, err := r.read(ctx, r.spool(e).Turn)
	if err != nil {
		return false, err
	}
	previous, err := r.read(ctx, r.spool(e).Previous)
	started := slices.ContainsFunc(current.Events, func(e spool.Entry) bool {
		return e.Kind == foreign.ToolStart || e.Kind == foreign.ToolEnd
	})
	open, last := previous.Working()
	return !current.Recorded && (started || open || !last.IsZero()), err
}

// Inside reports whether a directory is in a workspace.
func Inside(root, dir string) bool {
	rel, err := filepath.Rel(root, real(dir))
	return err == nil && filepath.IsLocal(rel)
}

// edited returns the paths that an edit tool wrote, relative to the workspace, and whether
// the tool deletes.
func (r *Recorder) edited(root, dir string, entry spool.Entry) (paths []string, deleted bool) {
	if entry.Kind != foreign.ToolEnd {
		return nil, false
	}
	tool, paths := entry.Tool, entry.Paths
	if entry.Bare {
		e, err := r.Adapter.Event(entry.Name, entry.Payload)
		if err != nil || e.Call == nil || e.Call.Failed {
			return nil, false // as if the event meant nothing
		}
		tool, paths = e.Call.Tool, e.Call.Paths
	}
	if tool != foreign.EditTool && tool != foreign.DeleteTool {
		return nil, false
	}
	return within(root, cmp.Or(entry.Workspace, dir), paths), tool == foreign.DeleteTool
}

// within returns paths relative to a workspace, without those outside of it.
func within(root, dir string, paths []string) []string {
	var out []string
	for _, path := range paths {
		if path == "" {
			continue // else the directory would count as named
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		rel, err := filepath.Rel(root, real(path))
		if err == nil && rel != "." && filepath.IsLocal(rel) {
			out = append(out, filepath.ToSlash(rel))
		}
	}
	return out
}

// real resolves the links in a path as far as it exists: agents name files by the way that
// they took, and a workspace is named by where it is.
func real(path string) string {
	rest := ""
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(found, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
