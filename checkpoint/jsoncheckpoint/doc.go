// Package jsoncheckpoint reads and writes the older form of workspace
// checkpoints: a JSON document that says, for each file, how its lines differ
// from V0, the content that the file had when a conversation first met it.
//
//	cp := &jsoncheckpoint.Checkpoint{}
//	err := json.Unmarshal(row, cp)
//	for _, f := range cp.Files {
//		text := f.Text(v0[f.URI.String()])
//	}
//
// Documents keep what the package does not know, so that reading and writing one
// changes nothing. Store keeps them under their conversation; Create makes one
// from files, Restore says what going back to one means, and ToTree and FromTree
// convert to and from the trees of package workspace. Bringing a tree back to
// disk is left to package checkpoint.
package jsoncheckpoint
