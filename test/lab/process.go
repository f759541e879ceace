package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrTimeout means that a process was killed because it did not end in time.
var ErrTimeout = errors.New("still running, killed")

// Patience is the longest wait for something that happens at once on a quiet machine.
const Patience = time.Minute

// outputDelay is how long the children of an ended process may keep its output open.
const outputDelay = 20 * time.Second

// Process is a program that the lab has started, in its own process group.
type Process struct {
	// Report, if set, adds text to Wait's error about a process that does not end.
	Report func() string

	name           string
	cmd            *exec.Cmd
	stdout, stderr transcript
	ended          chan struct{}
	err            error // the process's error, valid once ended is closed
}

// Options are options for starting a process.
type Options struct {
	// UID is the user of the process, 0: unchanged. Only root can change it.
	UID int
	// Env is the process's whole environment.
	Env []string
	// Dir is its working directory.
	Dir string
}

func start(o Options, argv ...string) (*Process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = o.Env, o.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if o.UID != 0 && os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(o.UID), Gid: uint32(o.UID)}
	}
	p := &Process{name: strings.Join(argv, " "), cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	// Children of a killed program may keep the pipe open.
	cmd.WaitDelay = outputDelay
	if err := startFromParent(cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// PID returns the id of the process and of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output returns the output so far: standard output, then standard error, whose lines would interrupt those of the
// other if both were one.
func (p *Process) Output() string { return p.stdout.String() + p.stderr.String() }

// Stdout returns standard output so far; the library writes to standard error alone.
func (p *Process) Stdout() string { return p.stdout.String() }

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Wait waits for the end of the process and returns nil for exit status 0. A process that still runs after limit is
// killed, and the error is ErrTimeout.
func (p *Process) Wait(limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		if p.err != nil {
			return fmt.Errorf("%s: %w", p.name, p.err)
		}
		return nil
	case <-timer.C:
		stacks := where(p.PID())
		if p.Report != nil {
			stacks += "\n" + p.Report()
		}
		p.Kill()
		return fmt.Errorf("%s: %w after %v%s", p.name, ErrTimeout, limit, stacks)
	}
}

// Signal sends a signal to the process alone.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill kills the process and its group, and waits for their end.
func (p *Process) Kill() {
	if p.Running() {
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	}
	<-p.ended
}

// stacks ends a Go program that hangs, and returns the end of its output, which has the stack of each goroutine.
func (p *Process) stacks() string {
	p.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
	}
	return Tail(p.Output(), 300)
}

// transcript keeps only the end of a process's output, so that endless output needs no more memory.
type transcript struct {
	mu   sync.Mutex
	text []byte
}

const maxTranscript = 1 << 20

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - maxTranscript; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// Tail returns the last lines of a text, indented, for a report.
func Tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = append([]string{"…"}, all[len(all)-lines:]...)
	}
	return "    " + strings.Join(all, "\n    ")
}
