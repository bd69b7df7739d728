package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/workspace"
)

// place is a workspace and the store that has its checkpoints.
type place struct {
	db      *stet.DB
	service *checkpoint.Service
	space   *checkpoint.Workspace
}

// checkpoints returns the service with the options of the settings.
func (a *app) checkpoints(db *stet.DB) (*checkpoint.Service, checkpoint.Options, error) {
	all, err := a.settings()
	if err != nil {
		return nil, checkpoint.Options{}, err
	}
	opts := db.CheckpointOptions()
	all.tune(&opts)
	opts.Scan.Full = a.reread
	opts.Command = a.command
	return checkpoint.New(db.Blobs(), db.Rows(), &opts), opts, nil
}

// tune sets the options of checkpoints, for the command line and for a server.
func (s settings) tune(opts *checkpoint.Options) {
	opts.DisableWrite = !s.on("capture.enabled")
	opts.DisableRead = !s.on("rewind.enabled")
	opts.OneByOne = !s.on("rewind.fast_checkpoints")
	opts.Force = s.on("capture.force")
	switch opts.Ignored = checkpoint.IgnoredFiles(s.text("capture.ignored")); {
	case opts.Ignored != "auto":
	case opts.IndexSeal != nil: // the store is encrypted
		opts.Ignored = checkpoint.CaptureIgnored
	default:
		opts.Ignored = checkpoint.NoticeIgnored
	}
	opts.ThresholdMS = s.number("capture.threshold_ms")
	opts.Scan = workspace.Options{MaxFile: s.size("capture.max_file"), NoIgnore: !s.on("capture.ignore"), Force: opts.Force}
	opts.Scan.Exclude = s.list("capture.exclude")
	if mode := s.text("capture.secrets"); mode == "skip" || mode == "auto" && opts.IndexSeal == nil && opts.Ignored != checkpoint.CaptureIgnored {
		opts.Scan.Secrets = workspace.SecretFiles
	}
	opts.RereadEvery = time.Duration(s.number("capture.reread_days")) * 24 * time.Hour
	if opts.RereadEvery == 0 {
		opts.RereadEvery = -1
	}
}

// storeOptions are the options of a store that come from the settings.
func (a *app) storeOptions() (stet.Options, error) {
	all, err := a.settings()
	if err != nil {
		return stet.Options{}, err
	}
	return stet.Options{Checkpoints: all.tune, LegacySnapshots: !all.on("agents.blob_storage_format_v1"), MeterProvider: a.meters}, nil
}

// rereadFlag adds the flag that trusts no time stamps.
func (a *app) rereadFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.reread, "reread", false, "read every file, even if its time stamps did not change")
}

// openPlace opens the workspace of -C or the one that contains the current directory.
// It rolls back an interrupted rewind there and reports it.
func (a *app) openPlace(ctx context.Context, db *stet.DB) (*place, error) {
	dir, err := a.findWorkspace(ctx, db)
	if err != nil {
		return nil, err
	}
	return a.openPlaceAt(ctx, db, dir)
}

// openPlaceAt is openPlace for a directory.
func (a *app) openPlaceAt(ctx context.Context, db *stet.DB, dir string) (*place, error) {
	if err := apart(db, dir); err != nil {
		return nil, err
	}
	p, err := a.openViewAt(ctx, db, dir)
	if err != nil {
		return nil, err
	}
	if err := p.space.Refused(); err != nil {
		return nil, errors.Join(err, p.space.Close())
	}
	a.settle(ctx, db, p.space, "")
	return p, nil
}

// openView is openPlace for verbs that read what is kept. The directory may be one that
// cannot be a workspace: conversations, and the checkpoints of others, need none.
func (a *app) openView(ctx context.Context, db *stet.DB) (*place, error) {
	dir, err := a.findWorkspace(ctx, db)
	if err != nil {
		return nil, err
	}
	return a.openViewAt(ctx, db, dir)
}

func (a *app) openViewAt(ctx context.Context, db *stet.DB, dir string) (*place, error) {
	service, _, err := a.checkpoints(db)
	if err != nil {
		return nil, err
	}
	space, err := service.Look(ctx, dir)
	if err != nil {
		return nil, err
	}
	a.sayRecovered(space.Recovered())
	a.tellCleanup(space.CleanupError()) // also of the recovered rewind
	return &place{db: db, service: service, space: space}, nil
}

// tellRecovery reports once that an interrupted rewind was rolled back, and what is
// left of it.
func (a *app) tellRecovery(r *checkpoint.Recovery) {
	a.sayRecovered(r)
	if r != nil {
		a.tellCleanup(r.CleanupError)
	}
}

func (a *app) sayRecovered(r *checkpoint.Recovery) {
	if r == nil {
		return
	}
	a.warn("a rewind that began %s was interrupted and has been rolled back (saved as %s)", when(r.Started, now()), r.Saved)
	if len(r.Left) > 0 {
		a.warn("left unchanged because they changed meanwhile: %s", few(r.Left, 10))
	}
}

// tellCleanup reports that staged files are left, and why.
func (a *app) tellCleanup(err error) {
	if err != nil {
		a.warn("staged files stay until the next command here: %v", err)
	}
}

// findWorkspace returns the directory of -C, or the one that holds the checkpoints of the
// current directory, or the current directory.
func (a *app) findWorkspace(ctx context.Context, db *stet.DB) (string, error) {
	dir, err := a.workspaceDir()
	if err != nil || a.workspace != "" {
		return dir, err
	}
	holder, _, err := a.holderOf(ctx, db, dir)
	return cmp.Or(holder, dir), err
}

// workspaceAbove returns the directory that holds the checkpoints of an agent's work in dir:
// an agent that works below the root of an unknown repository works on all of it.
func (a *app) workspaceAbove(ctx context.Context, db *stet.DB, dir string) (string, error) {
	holder, repository, err := a.holderOf(ctx, db, dir)
	return cmp.Or(holder, repository, dir), err
}

// holderOf returns the nearest directory at or above dir with checkpoints. If its rules
// leave out a repository in between, such as a work tree in an ignored directory, it would
// hold nothing of that, so the repository is the holder. The holder is "" if there is none;
// the repository is the nearest one at or above dir and below the holder.
func (a *app) holderOf(ctx context.Context, db *stet.DB, dir string) (holder, repository string, err error) {
	for above := dir; ; above = filepath.Dir(above) {
		_, err := db.Checkpoints().WorkspacePath(ctx, checkpoint.WorkspaceID(above))
		if err == nil {
			out, err := a.leavesOut(db, above, repository)
			if out {
				return repository, repository, err
			}
			return above, repository, err
		}
		if !errors.Is(err, checkpoint.ErrNotFound) {
			return "", "", err
		}
		if repository == "" && fileExists(filepath.Join(above, ".git")) {
			repository = above
		}
		if above == filepath.Dir(above) {
			return "", repository, nil
		}
	}
}

// leavesOut reports whether a workspace leaves out a repository below it, if there is one.
func (a *app) leavesOut(db *stet.DB, root, repository string) (bool, error) {
	if repository == "" {
		return false, nil
	}
	service, _, err := a.checkpoints(db)
	if err != nil {
		return false, err
	}
	out, err := service.LeavesOut(root, repository)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil // the workspace is gone, and with it its rules
	}
	return out, err
}

// apart rejects a workspace that contains the store, since its checkpoints would contain
// the store and a rewind would rewind it, too, and one inside the store, which a rewind
// would damage. No verb makes an exception for capture.force.
func apart(db *stet.DB, dir string) error {
	if db.Engine() == nil {
		return nil
	}
	store, err := filepath.Abs(db.Engine().Dir())
	if err != nil {
		return err
	}
	if store, err = filepath.EvalSymlinks(store); err != nil {
		return err
	}
	if _, inside := relative(store, dir); inside {
		return usage(fmt.Errorf("%s is part of the store %s, so it cannot be a workspace: a rewind would damage the store; change to another directory, or name one with -C", dir, store))
	}
	if _, inside := relative(dir, store); inside {
		return usage(fmt.Errorf("the store %s is inside the workspace %s, so a rewind would rewind the store, too (capture.force does not change that): change to a subdirectory, name one with -C, or put the store elsewhere (--store)", store, dir))
	}
	return nil
}

// withPlace runs fn with the open store and workspace.
func (a *app) withPlace(ctx context.Context, create bool, fn func(*place) error) error {
	return a.withStore(ctx, create, func(db *stet.DB) error {
		p, err := a.openPlace(ctx, db)
		if err != nil {
			return err
		}
		return errors.Join(fn(p), p.space.Close())
	})
}

// withView is withPlace for verbs that read what is kept; see openView.
func (a *app) withView(ctx context.Context, fn func(*place) error) error {
	return a.withStore(ctx, false, func(db *stet.DB) error {
		p, err := a.openView(ctx, db)
		if err != nil {
			return err
		}
		return errors.Join(fn(p), p.space.Close())
	})
}

// named returns the conversation that -c means here: a stored one by id or prefix,
// else a name from another program.
func (a *app) named(ctx context.Context, db *stet.DB) (string, error) {
	if a.conversation == "" {
		return "", nil
	}
	id, err := conversationID(ctx, db, a.conversation)
	if code, _ := Code(err); code == ExitNotFound {
		return a.conversation, nil
	}
	return id, err
}

// known is named for verbs that look for something: the conversation must exist.
func (a *app) known(ctx context.Context, p *place) (string, error) {
	conversation, err := a.named(ctx, p.db)
	if err == nil && conversation != "" {
		err = p.knows(ctx, conversation)
	}
	return conversation, err
}

// knows rejects a conversation without checkpoints here: it is probably misspelt, and
// a rewind would do nothing.
func (p *place) knows(ctx context.Context, conversation string) error {
	for _, err := range p.space.List(ctx, &checkpoint.ListOptions{Conversation: conversation, Limit: 1}) {
		return err
	}
	known, err := p.db.Conversations().Exists(ctx, conversation)
	if err == nil && !known {
		return coded(ExitNotFound, "no conversation %q, and no checkpoint of it in %s", conversation, tilde(p.space.Path()))
	}
	return err
}

// checkpointRoot returns the state of a checkpoint.
func (a *app) checkpointRoot(ctx context.Context, db *stet.DB, ref string) (blob.ID, error) {
	p, err := a.openView(ctx, db)
	if err != nil {
		return blob.ID{}, err
	}
	defer p.space.Close()
	conv, err := a.known(ctx, p)
	if err != nil {
		return blob.ID{}, err
	}
	rec, err := p.space.Resolve(ctx, ref, conv)
	if errors.Is(err, checkpoint.ErrNotFound) {
		return blob.ID{}, nothingNamed(ref, aCheckpoint, aConversation)
	}
	switch {
	case err != nil:
		return blob.ID{}, err
	case rec == nil:
		return blob.ID{}, usage(fmt.Errorf("%q is the current workspace; name a conversation or a checkpoint", ref))
	case rec.Root.IsZero():
		return blob.ID{}, coded(ExitNotFound, "checkpoint %s has no saved conversation", rec.Name())
	}
	return rec.Root, nil
}
