package stet

import "github.com/stet-dev/stet/stream"

// Streams returns the streams of the store.
func (db *DB) Streams() *stream.Store {
	db.streamsOnce.Do(func() { db.streams = stream.New(db.blobs, db.rows, nil) })
	return db.streams
}
