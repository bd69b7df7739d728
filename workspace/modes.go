package workspace

// Permission bits that files and directories get where the system stores none and no
// earlier tree has them.
const (
	newFileMode = 0o644
	newDirMode  = 0o755
	writeBits   = 0o222
)

// setMode sets the permission bits of what was looked at to those that the tree has, where
// the system stores none. Options.Modes comes first, then the previous tree. Where the
// system stores whether a file may be written to, that is taken over.
func (w *worker) setMode(j *dirJob, name string, st *fileStat, prev *indexEntry) {
	if !w.s.noModes || st.kind == isLink {
		return
	}
	dir, stored := st.kind == isDir, st.mode
	st.mode = newFileMode
	if dir {
		st.mode = newDirMode
	}
	if prev != nil && prev.captured() && prev.kind != Symlink && (prev.kind == Dir) == dir {
		st.mode = prev.mode
	}
	if mode, ok := w.s.opts.Modes[join(j.path, name)]; ok {
		st.mode = mode
	}
	if !onlyReadOnly || dir {
		return
	}
	if stored&writeBits == 0 {
		st.mode &^= writeBits
	} else if st.mode&writeBits == 0 {
		st.mode |= 0o200
	}
}
