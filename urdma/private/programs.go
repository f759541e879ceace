package private

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// listenTime is how long the client waits for its server to listen. It starts afterwards anyway: the programs
	// may meet in another way.
	listenTime = 5 * time.Second
	// endTime is how long a program may run on after its peer has ended.
	endTime = 10 * time.Second
)

// Program is one of the programs of a run. It ends with the calling thread.
type Program struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// StartProgram starts a program in the caller's process group, so that the terminal's signals reach it. The caller
// stays on its thread.
func StartProgram(path string, args, env []string, stdin *os.File) (*Program, error) {
	p := &Program{cmd: &exec.Cmd{Path: path, Args: args, Env: env, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM}}, ended: make(chan struct{})}
	if stdin != nil {
		p.cmd.Stdin = stdin
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // Status has the result
		close(p.ended)
	}()
	return p, nil
}

// Running reports whether the program still runs.
func (p *Program) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Stop ends the program and the processes that it has started.
func (p *Program) Stop() {
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		for _, pid := range family(p.cmd.Process.Pid) {
			_ = unix.Kill(pid, s) // fails if it has ended
		}
		select {
		case <-p.ended:
			return
		case <-time.After(endTime):
		}
	}
}

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// Signal sends it a signal.
func (p *Program) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) } // fails if it has ended

// Status is the exit status of the program.
func (p *Program) Status() syscall.WaitStatus {
	return p.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// Finish waits for the end of a program whose peer has ended, and reports whether it had to be stopped.
func (p *Program) Finish() (stopped bool) {
	for _, s := range []os.Signal{unix.SIGTERM, unix.SIGKILL} {
		select {
		case <-p.ended:
			return stopped
		case <-time.After(endTime):
			stopped = true
			p.Signal(s)
		}
	}
	<-p.ended
	return stopped
}

// Listens waits until a program listens for peers, at its urdmad or at a TCP socket of the kernel. It returns after
// listenTime or when the program ends.
func (p *Program) Listens(d *Daemon, interrupted func() bool) {
	for end := time.Now().Add(listenTime); p.Running() && !interrupted() && time.Now().Before(end); time.Sleep(pause) {
		if s, err := d.snapshot(); err == nil && len(s.Listeners) > 0 {
			return
		}
		if listensTCP(p.cmd.Process.Pid) {
			return
		}
	}
}

// listensTCP reports whether a process or one of its descendants has a listening socket (proc_net_tcp(5),
// proc_pid_task(5)).
func listensTCP(pid int) bool {
	listening := make(map[string]bool) // by the target of the descriptor's link
	for _, table := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile("/proc/net/" + table)
		for _, line := range strings.Split(string(text), "\n") {
			const state, inode = 3, 9
			if f := strings.Fields(line); len(f) > inode && f[state] == "0A" {
				listening[fmt.Sprintf("socket:[%s]", f[inode])] = true
			}
		}
	}
	return len(listening) > 0 && slices.ContainsFunc(family(pid), func(pid int) bool { return holds(pid, listening) })
}

func holds(pid int, sockets map[string]bool) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // none: it has ended
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil && sockets[link] {
			return true
		}
	}
	return false
}

// family is a process and all its descendants.
func family(pid int) []int {
	all := []int{pid}
	children, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range children {
		text, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, family(n)...)
			}
		}
	}
	return all
}
