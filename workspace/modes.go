package workspace

// Permission bits of files and directories if the system stores none and no earlier tree
// has them.
const (
	newFileMode = 0o644
	newDirMode  = 0o755
	writeBits   = 0o222
)

// setMode replaces the permission bits of st if the system stores none. They come from
// Options.Modes or else from the previous tree. If the system at least stores whether a
// file is writable, that is kept.
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
