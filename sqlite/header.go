package sqlite

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// checkHeader reads the first page by hand, before the SQL library may touch
// the file: what is not ours, or newer than us, stays as it is.
func checkHeader(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fileError("open database", err)
	}
	defer f.Close()
	var h [100]byte
	if _, err := io.ReadFull(f, h[:]); err != nil {
		return fmt.Errorf("%w: database is truncated to less than its header", ErrDamaged)
	}
	if string(h[:16]) != "SQLite format 3\x00" {
		return fmt.Errorf("%w: %s is not a database", ErrDamaged, databaseName)
	}
	if id := binary.BigEndian.Uint32(h[68:]); id != applicationID {
		return fmt.Errorf("%w: the database belongs to application %#x", ErrForeign, id)
	}
	if v := binary.BigEndian.Uint32(h[60:]); v > FormatVersion {
		return fmt.Errorf("%w: version %d, this release knows up to %d", ErrNewerFormat, v, FormatVersion)
	}
	return checkLength(f, h[:])
}

// checkLength finds a database that lost its end. While a WAL exists, pages may
// live there only, and the library decides.
func checkLength(f *os.File, h []byte) error {
	if info, err := os.Stat(f.Name() + "-wal"); err == nil && info.Size() > 0 {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	pageSize := int64(binary.BigEndian.Uint16(h[16:]))
	if pageSize == 1 {
		pageSize = 65536
	}
	pages := int64(binary.BigEndian.Uint32(h[28:]))
	if pages*pageSize > info.Size() {
		return fmt.Errorf("%w: database has %d bytes, its header says %d", ErrDamaged, info.Size(), pages*pageSize)
	}
	return nil
}
