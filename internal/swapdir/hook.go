package swapdir

import "io/fs"

// about is called before every change.
func (d *disk) about(call, path string) error {
	if d.hook == nil {
		return nil
	}
	if err := d.hook(call, path); err != nil {
		return &fs.PathError{Op: call, Path: path, Err: err}
	}
	return nil
}
