package supervise

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

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
	group uint32 // of the first process, or 0 if it has that of the console

	mu    sync.Mutex     // guards the handles, which are 0 after close
	first windows.Handle // the first process
	job   windows.Handle // 0 if none could be made
}

// start starts a command. At a console it stays in the group that Ctrl-C reaches; else it
// gets a group of its own, which can be interrupted. What it leaves running goes on.
func start(cmd *exec.Cmd, terminal bool) (*processes, error) {
	return startInJob(cmd, !terminal, 0)
}

var resumeProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

// startInJob starts a command in a job with limits. The command begins to run only after it
// is in the job, so that nothing that it starts is outside. In a job of others that allows
// no second one it runs without.
func startInJob(cmd *exec.Cmd, ownGroup bool, limits uint32) (*processes, error) {
	flags := uint32(windows.CREATE_SUSPENDED)
	if ownGroup {
		flags |= windows.CREATE_NEW_PROCESS_GROUP
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: flags}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &processes{}
	if ownGroup {
		p.group = uint32(cmd.Process.Pid)
	}
	const access = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE | windows.PROCESS_SUSPEND_RESUME | windows.SYNCHRONIZE
	var err error
	if p.first, err = windows.OpenProcess(access, false, uint32(cmd.Process.Pid)); err == nil {
		if p.job, err = newJob(limits); err == nil && windows.AssignProcessToJobObject(p.job, p.first) != nil {
			windows.CloseHandle(p.job)
			p.job = 0
		}
		err = resume(p.first)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it says that it was killed
		p.close()
		return nil, err
	}
	return p, nil
}

func resume(process windows.Handle) error {
	if err := resumeProcess.Find(); err != nil {
		return err
	}
	if status, _, _ := resumeProcess.Call(uintptr(process)); status != 0 {
		return windows.NTStatus(status).Errno()
	}
	return nil
}

func newJob(limits uint32) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil || limits == 0 {
		return job, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: limits},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

// signal interrupts the group, or ends the job with the exit code that a shell has for the
// signal.
func (p *processes) signal(sig os.Signal) {
	if sig == syscall.SIGINT && p.group != 0 && windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, p.group) == nil {
		return
	}
	number, _ := sig.(syscall.Signal)
	p.terminate(128 + uint32(number))
}

// terminate ends all processes, or the first one if there is no job. They may have ended
// just now.
func (p *processes) terminate(code uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.job != 0:
		_ = windows.TerminateJobObject(p.job, code)
	case p.first != 0:
		_ = windows.TerminateProcess(p.first, code)
	}
}

func (p *processes) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range []*windows.Handle{&p.job, &p.first} {
		if *h != 0 {
			windows.CloseHandle(*h)
			*h = 0
		}
	}
}

// asShells returns the exit code that a shell reports: that of an interrupt if Ctrl-C or
// Ctrl-Break ended the command.
func asShells(state *os.ProcessState) int {
	if code := state.ExitCode(); uint32(code) != uint32(windows.STATUS_CONTROL_C_EXIT) {
		return code
	}
	return 128 + int(syscall.SIGINT)
}
