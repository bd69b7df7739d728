package cloudagent

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/stet-dev/stet/fault"
	anyrunv1 "github.com/stet-dev/stet/gen/anyrun/v1"
	"github.com/stet-dev/stet/kv"
)

// Presigner creates addresses that grant temporary access to a snapshot.
type Presigner interface {
	// Presign returns an address to download a snapshot from or, with upload, to upload
	// one to. Anyone with the address has access, so it is never stored or logged.
	Presign(ctx context.Context, agent, snapshot string, upload bool) (string, error)
}

// SetSnapshot records the snapshot of the agent's machine. An address in it is not
// stored.
func (s *Store) SetSnapshot(ctx context.Context, agent string, snapshot *anyrunv1.ExternalSnapshot) error {
	if err := checkID("snapshot", snapshot.GetSnapshotId()); err != nil {
		return err
	}
	kept := proto.CloneOf(snapshot)
	kept.PresignedUrl = ""
	if kept.BlobStorageFormat == anyrunv1.BlobStorageFormat_BLOB_STORAGE_FORMAT_LEGACY_UNSPECIFIED && !s.opts.LegacySnapshots {
		kept.BlobStorageFormat = anyrunv1.BlobStorageFormat_BLOB_STORAGE_FORMAT_V1
	}
	if size := proto.Size(kept); size > 256<<10 {
		return fmt.Errorf("%w: snapshot of agent %s has %d bytes: %w", ErrInvalid, agent, size, kv.ErrTooLarge)
	}
	_, err := s.update(ctx, agent, func(c *change) error {
		c.rec.Snapshot = kept
		return nil
	})
	return err
}

// errNoPresigner means that the store cannot create addresses.
var errNoPresigner = fault.Named(fault.Unsupported, "no-presigner", "no presigner is configured")

// Snapshot returns the snapshot of an agent with a new address, to download from or
// to upload to.
func (s *Store) Snapshot(ctx context.Context, agent string, upload bool) (*anyrunv1.ExternalSnapshot, error) {
	if err := checkID("agent", agent); err != nil {
		return nil, err
	}
	l := s.lane(agent)
	defer s.release(l)
	now, err := s.load(ctx, l)
	if err != nil {
		return nil, err
	}
	if now.rec.Snapshot == nil {
		return nil, fmt.Errorf("snapshot of agent %s: %w", agent, ErrNotFound)
	}
	if s.opts.Presigner == nil {
		return nil, fmt.Errorf("snapshot of agent %s: %w", agent, errNoPresigner)
	}
	out := proto.CloneOf(now.rec.Snapshot)
	if out.PresignedUrl, err = s.opts.Presigner.Presign(ctx, agent, out.SnapshotId, upload); err != nil {
		return nil, fmt.Errorf("create an address of the snapshot of agent %s: %w", agent, err)
	}
	return out, nil
}
