package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-dev/stet"
	"github.com/stet-dev/stet/client"
	"github.com/stet-dev/stet/cloudagent"
	anyrunv1 "github.com/stet-dev/stet/gen/anyrun/v1"
)

func (a *app) snapshotCommand() *cobra.Command {
	var set string
	var upload bool
	cmd := &cobra.Command{
		Use:     "snapshot AGENT",
		Short:   "Set the machine image of an agent, or print an address for it",
		GroupID: groupLook,
		Long: `Print an address from which the image of an agent's machine can be downloaded, or,
with --upload, one to which it can be uploaded. The address is valid for fifteen minutes,
and gives access to anyone who has it. --set names the image first. Addresses need a
store with a bucket.`,
		Example: "  stet snapshot a1 --set image-7 --upload\n  stet snapshot a1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(db *stet.DB) error {
				return a.snapshot(cmd.Context(), db, args[0], set, upload)
			})
		},
	}
	cmd.Flags().StringVar(&set, "set", "", "name of the image")
	cmd.Flags().BoolVar(&upload, "upload", false, "print an address for uploading the image")
	return cmd
}

func (a *app) snapshot(ctx context.Context, db *stet.DB, name, set string, upload bool) error {
	agent, err := db.Agents().Find(ctx, name)
	if err != nil {
		return err
	}
	if set != "" {
		if err := db.Agents().SetSnapshot(ctx, agent.ID, &anyrunv1.ExternalSnapshot{SnapshotId: set}); err != nil {
			return err
		}
	}
	snapshot, err := db.Agents().Snapshot(ctx, agent.ID, upload)
	if err != nil {
		return err
	}
	format := strings.ToLower(strings.TrimPrefix(snapshot.GetBlobStorageFormat().String(), "BLOB_STORAGE_FORMAT_"))
	return a.print(map[string]any{
		"schema": "stet.snapshot.v1", "agent": agent.ID, "id": snapshot.GetSnapshotId(), "format": format, "url": snapshot.GetPresignedUrl(),
	}, snapshot.GetPresignedUrl()+"\n")
}

// remoteSigner lets a server make the addresses of its snapshots.
type remoteSigner struct{ agents *client.Agents }

var _ cloudagent.Presigner = remoteSigner{}

// Presign implements cloudagent.Presigner.
func (r remoteSigner) Presign(ctx context.Context, agent, _ string, upload bool) (string, error) {
	snapshot, err := r.agents.Snapshot(ctx, agent, upload)
	return snapshot.GetPresignedUrl(), err
}
