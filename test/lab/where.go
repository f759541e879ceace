package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// This file describes processes, for the report about one that hangs.

// Where describes what each process of this lab is doing, including children without a parent: their environment or
// command contains the lab's directory.
func (l *Lab) Where() string {
	var out strings.Builder
	all, _ := os.ReadDir("/proc")
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if dir := []byte(l.Dir); bytes.Contains(environment, dir) || bytes.Contains(command, dir) {
			fmt.Fprintf(&out, "\n  process %d: %.200q%s", pid, bytes.ReplaceAll(command, []byte{0}, []byte{' '}), where(pid))
		}
	}
	return out.String()
}

// where describes what each thread of a process is doing.
func where(pid int) string {
	var out strings.Builder
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		read := func(file string) string {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/%s", pid, task.Name(), file))
			return strings.TrimSpace(string(text))
		}
		fmt.Fprintf(&out, "\n    thread %s: in %s, system call %s; ran, waited (ns) and turns: %s", task.Name(),
			read("wchan"), read("syscall"), read("schedstat"))
	}
	return out.String()
}
