package cli

import (
	"os"
	"os/exec"
	"path/filepath"
)

// lastingPlace is the location of the store for a process in another directory.
func (a *app) lastingPlace() (string, error) {
	dir, err := a.storeDir()
	if err != nil {
		return a.storePlace(), nil // a server or a database
	}
	return filepath.Abs(dir)
}

// behind starts a verb on a store in a process of its own, which goes on after this one.
func (a *app) behind(store string, in *os.File, setting string, args ...string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	env := append(os.Environ(), setting)
	if a.copying.flag {
		env = append(env, envOf("remote.url")+"="+a.remote)
	}
	for name, path := range map[string]string{"STET_KEY_FILE": a.keyPath(), "STET_CONFIG": a.settingsFile()} {
		if path == "" {
			continue
		}
		if path, err = filepath.Abs(path); err != nil { // it starts in another directory
			return err
		}
		env = append(env, name+"="+path)
	}
	cmd := &exec.Cmd{
		Path: program, Args: append([]string{os.Args[0], "--store", store, "-q"}, args...),
		Env: env,
	}
	detach(cmd)
	if in != nil {
		cmd.Stdin = in
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
