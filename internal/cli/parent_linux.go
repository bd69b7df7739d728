package cli

import (
	"fmt"
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
