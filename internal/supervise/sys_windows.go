package supervise

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// handedOn are the signals that a command gets: Ctrl-C and Ctrl-Break are interrupts, and a
// console that is closed sends SIGTERM.
var handedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM}

// separators are the characters that make a name a path.
const separators = `/\`

// processes are those of a command, in a job: signals do not exist here, and ending the first
// process would leave those that it started.
type processes struct {
	group uint32         // of the first process, or 0 if it has that of the console
	job   windows.Handle // 0 if none could be made
}

// start starts a command. At a console it stays in the group that Ctrl-C reaches; else it
// gets a group of its own, which can be interrupted.
func start(cmd *exec.Cmd, terminal bool) (*processes, error) {
	if !terminal {
		cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &processes{}
	if !terminal {
		p.group = uint32(cmd.Process.Pid)
	}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return p, nil
	}
	p.job = job
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(cmd.Process.Pid))
	if err == nil {
		err = windows.AssignProcessToJobObject(job, h)
		windows.CloseHandle(h)
	}
	if err != nil { // it ended at once, or is in a job that allows no other
		p.close()
		p.job = 0
	}
	return p, nil
}

// signal interrupts the group, or ends the job with the exit code that a shell has for the
// signal.
func (p *processes) signal(sig os.Signal) {
	if sig == syscall.SIGINT && p.group != 0 && windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, p.group) == nil {
		return
	}
	number, _ := sig.(syscall.Signal)
	if p.job != 0 {
		_ = windows.TerminateJobObject(p.job, 128+uint32(number)) // it may have ended just now
	}
}

func (p *processes) close() {
	if p.job != 0 {
		windows.CloseHandle(p.job)
	}
}
