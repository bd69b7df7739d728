package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-dev/stet/blob"
	"github.com/stet-dev/stet/checkpoint"
	"github.com/stet-dev/stet/internal/keyspace"
	"github.com/stet-dev/stet/kv"
	"github.com/stet-dev/stet/workspace"
)

// checkTrees finds the damage in the trees of checkpoints. It costs time only on a
// damaged store.
func (s *Service) checkTrees(ctx context.Context, report *Report, readData bool) error {
	checkpoints := checkpoint.New(s.stores.Blobs, s.stores.Rows, nil)
	for row, err := range s.stores.Rows.Scan(ctx, keyspace.Checkpoints(), kv.ScanOptions{KeysOnly: true}) {
		if err != nil {
			return fmt.Errorf("check checkpoints: %w", err)
		}
		rec, err := checkpoints.Get(ctx, keyspace.Last(row.Key))
		if isDamage(err) || errors.Is(err, checkpoint.ErrNotFound) {
			continue // reported with the rows
		}
		if err != nil {
			return fmt.Errorf("check checkpoints: %w", err)
		}
		problems, err := workspace.Verify(ctx, s.stores.Blobs, rec.Tree, readData)
		if err != nil {
			return fmt.Errorf("check checkpoint %s: %w", rec.ID, err)
		}
		for _, p := range problems {
			addTreeDamage(report, rec, p)
		}
	}
	return nil
}

func addTreeDamage(report *Report, rec *checkpoint.Record, p workspace.Problem) {
	at := slices.IndexFunc(report.Damage, func(d Damage) bool { return d.ID == p.ID })
	if at < 0 {
		d := Damage{Kind: DamageMalformed, ID: p.ID, From: rec.Tree, Err: p.Err}
		switch {
		case errors.Is(p.Err, blob.ErrNotFound):
			d.Kind = DamageMissing
		case errors.Is(p.Err, blob.ErrCorrupt):
			d.Kind = DamageCorrupt
		}
		at = len(report.Damage)
		report.Damage = append(report.Damage, d)
	}
	d := &report.Damage[at]
	d.Field = cmp.Or(d.Field, fmt.Sprintf("%q in checkpoint %s", p.Path, rec.ID))
	if rec.Conversation != "" && !slices.Contains(d.Conversations, rec.Conversation) {
		d.Conversations = append(d.Conversations, rec.Conversation)
	}
}
