package sqlite

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// checkHeader reads the first page by hand, before the SQL library touches the file. A
// foreign or newer file is left unchanged.
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
		return fmt.Errorf("%w: version %d; this release reads up to %d", ErrNewerFormat, v, FormatVersion)
	}
	return checkLength(f, h[:])
}

// checkLength detects a truncated database. While a WAL exists, some pages may be only
// there, and the library decides.
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
