package sqlite

import (
	"context"
	"strconv"
)

// spareShare is the part of the file that may stay free for new data.
const spareShare = 8

// shrinkStep is how many pages move in one transaction: few enough not to block a
// writer for long.
func (o *Options) shrinkStep() int {
	if o.shrinkPages > 0 {
		return o.shrinkPages
	}
	return 256
}

// Shrink gives free pages of the database back to the file system, in small steps
// alongside readers and writers, until an eighth or a megabyte is left. It needs no extra
// space. Stores created before Shrink existed keep their free pages.
func (db *DB) Shrink(ctx context.Context) error {
	step := db.opts.shrinkStep()
	for done := false; !done; {
		err := db.writer.do(&request{ctx: ctx, task: func(c *conn) error {
			spare, err := sparePages(c, step)
			if err != nil {
				return sqlError("count free pages", err)
			}
			if done = spare < step; done {
				return nil
			}
			_, err = c.pragma("incremental_vacuum(" + strconv.Itoa(step) + ")")
			return sqlError("give back free pages", err)
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// sparePages returns the number of free pages beyond those that may stay.
func sparePages(c *conn, least int) (int, error) {
	var counts [3]int
	for i, name := range []string{"freelist_count", "page_count", "auto_vacuum"} {
		value, err := c.pragma(name)
		if err != nil {
			return 0, err
		}
		if counts[i], err = strconv.Atoi(value); err != nil {
			return 0, err
		}
	}
	if counts[2] == 0 { // created without incremental vacuum
		return 0, nil
	}
	return counts[0] - max(least, counts[1]/spareShare), nil
}
