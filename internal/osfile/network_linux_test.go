package osfile

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestNetworks(t *testing.T) {
	for number, want := range map[uint32]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB2_SUPER_MAGIC: "SMB", unix.V9FS_MAGIC: "9P",
		unix.EXT4_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "", unix.EXFAT_SUPER_MAGIC: "",
	} {
		if got := networks[number]; got != want {
			t.Errorf("%#x is %q, want %q", number, got, want)
		}
	}
	if got := Network("/proc"); got != "" {
		t.Errorf("/proc is on %q", got)
	}
	if got := Network("/no/such/directory"); got != "" {
		t.Errorf("what does not exist is on %q", got)
	}
}
