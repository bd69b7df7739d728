package osfile

import (
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Stat is what tells one file, and one state of it, from another. Package os keeps most of
// it to itself.
type Stat struct {
	Volume, Index uint64 // of the file, whatever its names
	Links         uint64 // number of names
	Size          int64
	Mtime, Ctime  int64 // nanoseconds; Ctime follows changes of names and attributes too
	Dir           bool  // a directory, and not a link to one
	Reparse       bool  // a link, or what else leads elsewhere
	ReadOnly      bool
}

// share lets others do with an open file what they want meanwhile.
const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// StatAt looks at a path below a root, at a link itself. It asks for attributes only, which a
// program that keeps others from its file cannot refuse.
func StatAt(root *os.Root, path string) (Stat, error) {
	h, err := openAt(root, path, windows.FILE_READ_ATTRIBUTES)
	if err != nil {
		return Stat{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	defer windows.CloseHandle(h)
	return statHandle(h)
}

// StatOf looks at an open file.
func StatOf(f *os.File) (Stat, error) { return statHandle(windows.Handle(f.Fd())) }

func statHandle(h windows.Handle) (Stat, error) {
	var d windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &d); err != nil {
		return Stat{}, err
	}
	has := func(attribute uint32) bool { return d.FileAttributes&attribute != 0 }
	s := Stat{
		Volume: uint64(d.VolumeSerialNumber), Index: uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow),
		Links: uint64(d.NumberOfLinks), Size: int64(d.FileSizeHigh)<<32 | int64(d.FileSizeLow),
		Mtime: d.LastWriteTime.Nanoseconds(), Reparse: has(windows.FILE_ATTRIBUTE_REPARSE_POINT),
		ReadOnly: has(windows.FILE_ATTRIBUTE_READONLY),
	}
	s.Dir = has(windows.FILE_ATTRIBUTE_DIRECTORY) && !s.Reparse
	s.Ctime = s.Mtime
	var basic struct { // FILE_BASIC_INFO
		creation, access, write, change windows.Filetime
		attributes, _                   uint32
	}
	err := windows.GetFileInformationByHandleEx(h, windows.FileBasicInfo, (*byte)(unsafe.Pointer(&basic)), uint32(unsafe.Sizeof(basic)))
	if err == nil && basic.change != (windows.Filetime{}) {
		s.Ctime = basic.change.Nanoseconds()
	}
	return s, nil
}

// openAt opens what is at a path, a link itself, with the access asked for. Its directory
// is opened through the root.
func openAt(root *os.Root, path string, access uint32) (windows.Handle, error) {
	dir, name, err := parentOf(root, path)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	if name == "." {
		name = ""
	}
	object, err := windows.NewNTUnicodeString(name)
	if err != nil {
		return 0, err
	}
	attributes := &windows.OBJECT_ATTRIBUTES{
		RootDirectory: windows.Handle(dir.Fd()), ObjectName: object, Attributes: windows.OBJ_CASE_INSENSITIVE,
	}
	attributes.Length = uint32(unsafe.Sizeof(*attributes))
	var h windows.Handle
	err = windows.NtCreateFile(&h, access|windows.SYNCHRONIZE, attributes, &windows.IO_STATUS_BLOCK{}, nil,
		windows.FILE_ATTRIBUTE_NORMAL, share, windows.FILE_OPEN,
		windows.FILE_OPEN_REPARSE_POINT|windows.FILE_OPEN_FOR_BACKUP_INTENT|windows.FILE_SYNCHRONOUS_IO_NONALERT, 0, 0)
	if err != nil {
		return 0, numbered(err)
	}
	return h, nil
}

func parentOf(root *os.Root, path string) (dir *os.File, name string, err error) {
	parent, name := ".", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	dir, err = root.Open(parent)
	return dir, name, err
}

// numbered returns the error number of a status, which errors.Is knows.
func numbered(err error) error {
	if status, ok := err.(windows.NTStatus); ok {
		return status.Errno()
	}
	return err
}

// renameInfo is FILE_RENAME_INFORMATION with room for the longest name.
type renameInfo struct {
	replace  uint32
	root     windows.Handle
	length   uint32
	fileName [256]uint16
}

// RenameNew renames a path below a root without ever replacing anything. If the new name is
// taken, the error is fs.ErrExist.
func RenameNew(root *os.Root, from, to string) error {
	h, err := openAt(root, from, windows.DELETE)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(h)
	dir, name, err := parentOf(root, to)
	if err != nil {
		return err
	}
	defer dir.Close()
	text, err := windows.UTF16FromString(name)
	if err != nil {
		return err
	}
	info := renameInfo{root: windows.Handle(dir.Fd())}
	if len(text) > len(info.fileName) {
		return windows.ERROR_FILENAME_EXCED_RANGE
	}
	copy(info.fileName[:], text)
	info.length = uint32((len(text) - 1) * 2)
	err = windows.NtSetInformationFile(h, &windows.IO_STATUS_BLOCK{}, (*byte)(unsafe.Pointer(&info)),
		uint32(unsafe.Sizeof(info)), windows.FileRenameInformation)
	return numbered(err)
}
