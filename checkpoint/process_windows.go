package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/windows"
)

// here returns the name of this machine: process times count from a fixed date, so no
// process of an earlier boot has the time of a later one.
var here = sync.OnceValue(func() Process {
	name, err := os.Hostname()
	if err != nil {
		return Process{}
	}
	return Process{Boot: "windows:" + name}
})

// processStart returns when a process started, and whether it has ended. The error
// is fs.ErrNotExist if there is no such process.
func processStart(pid int) (start uint64, ended bool, err error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return 0, false, fs.ErrNotExist
	}
	if err != nil {
		return 0, false, err
	}
	defer windows.CloseHandle(h)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return 0, false, err
	}
	event, err := windows.WaitForSingleObject(h, 0)
	return uint64(created.Nanoseconds()), event == windows.WAIT_OBJECT_0, err
}
