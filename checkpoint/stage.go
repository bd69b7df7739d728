package checkpoint

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/stet-dev/stet/workspace"
)

// stageWorkers is the number of files that are staged side by side. More than
// four gained nothing: restoring 1,000 files took 131 ms with one, 59 with four.
const stageWorkers = 4

// stagePrefix begins the names of the staging directories of this store, so
// that what a crash left can be told from what another store is using.
func stagePrefix(nonce []byte) string {
	return workspace.StagePrefix + hex.EncodeToString(nonce) + "-"
}

func newStageName(nonce []byte) (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("name staging directory: %w", err)
	}
	return stagePrefix(nonce) + hex.EncodeToString(b[:]), nil
}

// fillStage stages everything that the steps need and makes it durable.
func (w *Workspace) fillStage(ctx context.Context, s *stageDir, steps []*step) error {
	uid, gid, err := s.d.owner()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(stageWorkers)
	for _, st := range steps {
		if !st.stages() {
			continue
		}
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			uid, gid := uid, gid
			if root := os.Geteuid() == 0; root && st.kind == stepSwap {
				if old, err := s.d.lstat(st.path); err == nil {
					uid, gid = old.uid, old.gid // a restored file belongs to whom it belonged
				}
			}
			return w.stageOne(ctx, s, st, uid, gid)
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	return s.sync()
}

func (w *Workspace) stageOne(ctx context.Context, s *stageDir, st *step, uid, gid int) (err error) {
	slot := st.newSlot()
	switch st.to.Kind {
	case workspace.Dir:
		err = s.mkdir(slot, st.to.Mode|ownerWrites, uid, gid)
	case workspace.Symlink:
		var target string
		if target, err = workspace.ReadLink(ctx, w.s.blobs, *st.to); err == nil {
			err = s.link(slot, target, uid, gid)
		}
	default:
		err = w.stageFile(ctx, s, st, uid, gid)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", st.path, err)
	}
	st.staged, err = s.stat(slot)
	return err
}

func (w *Workspace) stageFile(ctx context.Context, s *stageDir, st *step, uid, gid int) error {
	content, err := workspace.OpenFile(ctx, w.s.blobs, *st.to)
	if err != nil {
		return err
	}
	defer content.Close()
	return s.file(st.newSlot(), content, st.to.Mode, uid, gid)
}
