package osfile

import "golang.org/x/sys/unix"

// Network returns the kind of network file system that a directory is on, or "" if it is
// local or not known to be one: of FUSE nobody can say.
func Network(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	return networks[uint32(st.Type)]
}

var networks = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.CIFS_SUPER_MAGIC: "SMB", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB",
	unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda", unix.V9FS_MAGIC: "9P", unix.NCP_SUPER_MAGIC: "NCP",
	0x00c36400: "Ceph", 0x47504653: "GPFS", 0x0bd00bd0: "Lustre", // package unix does not name them
}
