// Package anyrunv1 is the wire format of machine snapshots, which cloud agents
// start from. The snapshots themselves are kept elsewhere.
package anyrunv1
