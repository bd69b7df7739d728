package cli

import (
	"io/fs"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// processAbove returns the name of a process's program, without its ending, and the process
// that started it, or 0 if that has ended.
func processAbove(pid int) (name string, above int, err error) {
	list, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return "", 0, err
	}
	defer windows.CloseHandle(list)
	running := make(map[uint32]bool)
	parent, found := uint32(0), false
	entry := windows.ProcessEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err = windows.Process32First(list, &entry); err == nil; err = windows.Process32Next(list, &entry) {
		running[entry.ProcessID] = true
		if entry.ProcessID == uint32(pid) {
			name, parent, found = strings.TrimSuffix(strings.ToLower(windows.UTF16ToString(entry.ExeFile[:])), ".exe"), entry.ParentProcessID, true
		}
	}
	switch {
	case !found:
		return "", 0, fs.ErrNotExist
	case !running[parent]:
		return name, 0, nil
	}
	return name, int(parent), nil
}

// processesAbove returns, for every running process, the one that started it.
func processesAbove() (map[int]int, error) {
	list, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(list)
	out := make(map[int]int)
	entry := windows.ProcessEntry32{}
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err = windows.Process32First(list, &entry); err == nil; err = windows.Process32Next(list, &entry) {
		out[int(entry.ProcessID)] = int(entry.ParentProcessID)
	}
	return out, nil
}
