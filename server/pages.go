package server

import (
	"context"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/server/page"
)

// describers lets the page encode checkpoints as the checkpoint service does.
func describers(db *stet.DB) func(context.Context) (page.Describe, error) {
	return func(ctx context.Context) (page.Describe, error) {
		d, err := (&checkpointService{db: db}).describer(ctx)
		if err != nil {
			return nil, err
		}
		return d.checkpoint, nil
	}
}
