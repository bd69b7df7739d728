package cli

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// processAbove returns the name of a process's program and the process that started it.
func processAbove(pid int) (name string, above int, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0, err
	}
	text := string(stat)
	from, to := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	rest := strings.Fields(text[to+1:])
	if from < 0 || to < from || len(rest) < 2 {
		return "", 0, fmt.Errorf("process %d: stat is %.100q", pid, text)
	}
	above, err = strconv.Atoi(rest[1])
	return text[from+1 : to], above, err
}

// processesAbove returns, for every running process, the one that started it.
func processesAbove() (map[int]int, error) {
	entries, err := fs.ReadDir(os.DirFS("/proc"), ".")
	if err != nil {
		return nil, err
	}
	out := make(map[int]int, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		rest := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(rest) < 2 || rest[0] == "Z" {
			continue
		}
		if out[pid], err = strconv.Atoi(rest[1]); err != nil {
			return nil, fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return out, nil
}
