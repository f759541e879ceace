package private

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"urdma/inspect"
)

const (
	// startTime is how long a urdmad may take to answer: DPDK's drivers take seconds.
	startTime = time.Minute
	// stopTime is how long it may take to stop before it is killed.
	stopTime = 10 * time.Second
	// pause is the interval between two checks of a state.
	pause = 5 * time.Millisecond
)

// Daemon is a urdmad that ends with the calling thread at the latest.
type Daemon struct {
	Socket string

	cmd   *exec.Cmd
	log   *os.File // nil: the log goes to standard error
	ended chan struct{}
}

// Start starts the urdmad binary with its socket in dir. The caller must stay on its thread (runtime.LockOSThread)
// until urdmad has stopped. If shown is false, the log is kept for Err.
func Start(urdmad string, dir *Directory, name string, shown bool, args ...string) (*Daemon, error) {
	d := &Daemon{Socket: filepath.Join(dir.Path, name+".sock"), ended: make(chan struct{})}
	d.cmd = exec.Command(urdmad, append([]string{"--socket", d.Socket}, args...)...)
	d.cmd.Env = withoutManager(os.Environ())
	d.cmd.Stderr = os.Stderr
	if !shown {
		var err error
		if d.log, err = nameless(dir.Path); err != nil {
			return nil, err
		}
		d.cmd.Stderr = d.log
	}
	// A process group of its own: only the command handles an interrupt of the terminal.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGTERM}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting urdmad: %w", err)
	}
	go func() {
		_ = d.cmd.Wait() // ProcessState has the result
		close(d.ended)
	}()
	return d, nil
}

// nameless makes a file that vanishes with its last descriptor.
func nameless(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "log")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// withoutManager removes the variables that a service manager set for our own process.
func withoutManager(env []string) (out []string) {
	for _, e := range env {
		switch name, _, _ := strings.Cut(e, "="); name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "JOURNAL_STREAM":
		default:
			out = append(out, e)
		}
	}
	return out
}

// Ready waits until urdmad answers and, if joined is true, its links are up.
func (d *Daemon) Ready(joined bool, interrupted func() bool) error {
	for end := time.Now().Add(startTime); !interrupted(); time.Sleep(pause) {
		s, err := d.snapshot()
		switch {
		case !d.Running():
			return d.Err()
		case err == nil && (!joined || linksUp(s)):
			return nil
		case time.Now().After(end):
			return errors.Join(fmt.Errorf("urdmad is not ready after %v", startTime), err)
		}
	}
	return nil
}

func linksUp(s *inspect.Snapshot) bool {
	for i := range s.Ports {
		if !s.Ports[i].LinkUp {
			return false
		}
	}
	return true
}

func (d *Daemon) snapshot() (*inspect.Snapshot, error) {
	s, err := inspect.Open(d.Socket)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Fetch()
}

// Running reports whether urdmad still runs.
func (d *Daemon) Running() bool {
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// Err is nil while urdmad runs. Afterwards it says how urdmad ended, with the end of its log.
func (d *Daemon) Err() error {
	if d.Running() {
		return nil
	}
	return fmt.Errorf("urdmad has ended: %v%s%s", d.cmd.ProcessState, d.killer(), d.tail())
}

// killer says who may have killed urdmad.
func (d *Daemon) killer() string {
	if d.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		return ""
	}
	return ", perhaps by the kernel, because the memory of the container or machine was used up"
}

// tail is the end of the log, beginning with a whole line.
func (d *Daemon) tail() string {
	const most = 4 << 10
	if d.log == nil {
		return ""
	}
	size, _ := d.log.Seek(0, io.SeekEnd)
	b := make([]byte, min(size, most))
	n, _ := d.log.ReadAt(b, size-int64(len(b)))
	text := string(b[:n])
	if size > most {
		_, text, _ = strings.Cut(text, "\n")
	}
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "\n" + text
}

// Stop ends urdmad and waits for it.
func (d *Daemon) Stop() {
	_ = d.cmd.Process.Signal(unix.SIGTERM) // fails if it has ended
	select {
	case <-d.ended:
	case <-time.After(stopTime):
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
	if d.log != nil {
		d.log.Close()
	}
}
