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

// ErrTimeout says that a process had to be killed because it did not end.
var ErrTimeout = errors.New("still running, killed")

// Patience is how long a lab waits for what happens at once on a quiet machine.
const Patience = time.Minute

// outputDelay is how long an ended process's output may be kept open by what it left
// behind.
const outputDelay = 20 * time.Second

// Process is a program the lab started, in a process group of its own.
type Process struct {
	// Report, if set, adds to what Wait tells of a process that does not end.
	Report func() string

	name           string
	cmd            *exec.Cmd
	stdout, stderr transcript
	ended          chan struct{}
	err            error // of the process, valid once ended is closed
}

// Options say how a process is started.
type Options struct {
	// UID, where it is not 0, is whom the process runs as. Only root can ask.
	UID int
	// Env is all of its environment.
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
	// What a killed program left behind may hold the pipe open.
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

// PID is the process's id, and that of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Output is what the process wrote so far: standard output, then standard
// error, which would cut through the other's lines if both were one.
func (p *Process) Output() string { return p.stdout.String() + p.stderr.String() }

// Running tells whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Wait waits for the end of the process. It gives nil for exit status 0. One
// that still runs after limit is killed, and the error is ErrTimeout.
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

// Kill ends the process and its group with SIGKILL and waits for that.
func (p *Process) Kill() {
	if p.Running() {
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	}
	<-p.ended
}

// stacks ends a Go program that hangs and returns the end of what it wrote, with
// what each of its goroutines was about.
func (p *Process) stacks() string {
	p.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
	}
	return Tail(p.Output(), 300)
}

// transcript keeps the end of what a process wrote, so that one that never
// stops talking takes no more memory than that.
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

// Tail gives the last lines of a text, indented, for a report.
func Tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = append([]string{"…"}, all[len(all)-lines:]...)
	}
	return "    " + strings.Join(all, "\n    ")
}
