// Package aiserverv1 is the wire format of cloud agents: their state, the
// metadata row that points at it, and the stream over which it is watched.
//
//	meta := new(aiserverv1.CloudAgentStatePersistedMetadata)
//	if err := proto.Unmarshal(row, meta); err != nil {
//		return fmt.Errorf("decode metadata: %w", err)
//	}
//	id := meta.GetCloudAgentStateBlobId()
package aiserverv1
