package stet

import "github.com/stet-dev/stet/cloudagent"

// Agents returns the cloud agents of the store.
func (db *DB) Agents() *cloudagent.Store {
	db.agentsOnce.Do(func() {
		db.agents = cloudagent.New(db.blobs, db.rows, &cloudagent.Options{Presigner: db.presigner, LegacySnapshots: db.legacy})
	})
	return db.agents
}
