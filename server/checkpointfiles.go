package server

import (
	"context"
	"strings"

	"github.com/stet-dev/stet/blob"
	stetv1 "github.com/stet-dev/stet/gen/stet/v1"
	"github.com/stet-dev/stet/server/internal/wire"
	"github.com/stet-dev/stet/workspace"
)

// counting lists files and counts all of them, including those for which the list has
// no room.
type counting struct {
	prefix   string // of all paths: the directory and a slash, or nothing
	contains string // in lower case
	shallow  bool
	res      *stetv1.CheckpointFilesResponse
	room     int
	dirs     map[string]*stetv1.CheckpointFile
}

// countFiles lists what is directly in a directory, or the files below it whose path
// contains a text.
func (s *checkpointService) countFiles(ctx context.Context, dir blob.ID, m *stetv1.CheckpointFilesRequest) (*stetv1.CheckpointFilesResponse, error) {
	c := &counting{
		contains: strings.ToLower(m.GetContains()), shallow: m.GetShallow(),
		res: &stetv1.CheckpointFilesResponse{}, room: wire.MaxMessage / 2, dirs: make(map[string]*stetv1.CheckpointFile),
	}
	if m.GetPath() != "" {
		c.prefix = m.GetPath() + "/"
	}
	if err := workspace.Walk(ctx, s.db.Blobs(), dir, c.entry); err != nil {
		return nil, lost(err)
	}
	return c.res, nil
}

func (c *counting) entry(path string, e workspace.Entry) error {
	first, _, below := strings.Cut(path, "/")
	if e.Kind == workspace.Dir {
		if c.shallow && c.contains == "" && !below {
			c.dirs[first] = c.list(path, e)
		}
		return nil
	}
	if c.contains != "" && !strings.Contains(strings.ToLower(c.prefix+path), c.contains) {
		return nil
	}
	c.res.Total++
	c.res.TotalBytes += e.Size
	switch dir := c.dirs[first]; {
	case c.shallow && below && dir != nil:
		dir.Files++
	case !c.shallow || !below:
		c.list(path, e)
	}
	return nil
}

// list adds an entry if there is room for it.
func (c *counting) list(path string, e workspace.Entry) *stetv1.CheckpointFile {
	if c.room -= len(c.prefix) + len(path) + fileBytes; c.room < 0 || len(c.res.GetFiles()) == maxFiles {
		c.res.Truncated = true
		return nil
	}
	file := wireFile(c.prefix+path, e)
	c.res.Files = append(c.res.Files, file)
	return file
}
