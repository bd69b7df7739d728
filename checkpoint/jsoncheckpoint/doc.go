// Package jsoncheckpoint reads and writes the older form of workspace checkpoints: a
// JSON document that records, for each file, how its lines differ from V0, the
// content of the file when a conversation first used it.
//
//	cp := &jsoncheckpoint.Checkpoint{}
//	err := json.Unmarshal(row, cp)
//	for _, f := range cp.Files {
//		text := f.Text(v0[f.URI.String()])
//	}
//
// Documents keep unknown fields, so reading and writing one changes nothing. Store
// keeps them under their conversation; Create makes one from files, Restore computes
// the result of going back to one, and ToTree and FromTree convert to and from the
// trees of package workspace. Restoring a tree to disk is left to package checkpoint.
package jsoncheckpoint
