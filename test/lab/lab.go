package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// OrdinaryUID is the user for everything that needs no root, if root starts the lab: nobody, who owns no files.
const OrdinaryUID = 65534

// Lab has a directory, the programs under test in it, and processes.
type Lab struct {
	// Dir is the lab's own directory.
	Dir string
	// FastClock is a library that gives perftest and mckey another clock, with which they start at once; their
	// figures are meaningless then (clock/clock.c).
	FastClock bool

	bin       string
	mu        sync.Mutex
	processes []*Process
	nodes     []*Node
	user      *Process // holds the user namespace, if there is one
}

// New makes a lab with copies of the files in build, so that every user can run them, wherever the source tree is.
// The environment variable URDMA_DAEMON may name another urdmad, such as test/core/coreurdmad.
func New(build string) (*Lab, error) {
	dir, err := os.MkdirTemp("", "urdma-")
	if err != nil {
		return nil, err
	}
	l := &Lab{Dir: dir, bin: filepath.Join(dir, "bin")}
	if err := errors.Join(os.Chmod(dir, 0o755), l.copyPrograms(build)); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Core reports whether URDMA_DAEMON names test/core/coreurdmad, which answers neither urdma show nor urdma inject.
func Core() bool { return filepath.Base(os.Getenv("URDMA_DAEMON")) == "coreurdmad" }

func (l *Lab) copyPrograms(build string) error {
	files := []string{"urdmad", "urdma", "liburdma.so"}
	examples, _ := filepath.Glob(filepath.Join(build, "examples", "*"))
	for _, e := range examples {
		files = append(files, filepath.Join("examples", filepath.Base(e)))
	}
	if err := os.MkdirAll(filepath.Join(l.bin, "examples"), 0o755); err != nil {
		return err
	}
	for _, f := range files {
		from := filepath.Join(build, f)
		if daemon := os.Getenv("URDMA_DAEMON"); daemon != "" && f == "urdmad" {
			from = daemon
		}
		if err := copyFile(filepath.Join(l.bin, f), from); err != nil {
			return fmt.Errorf("%w (make build first)", err)
		}
	}
	for _, f := range []string{"udprelay", "clock.so"} { // only tests use these
		if err := copyFile(l.Program(f), filepath.Join(build, f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return copyNames(filepath.Join(l.bin, "liburdma.d"), filepath.Join(build, "liburdma.d"))
}

// copyNames copies a directory of symbolic links and libraries.
func copyNames(to, from string) error {
	links, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("%w (make build first)", err)
	}
	err = os.MkdirAll(to, 0o755)
	for _, link := range links {
		if link.Type().IsRegular() {
			err = errors.Join(err, copyFile(filepath.Join(to, link.Name()), filepath.Join(from, link.Name())))
			continue
		}
		target, bad := os.Readlink(filepath.Join(from, link.Name()))
		if err = errors.Join(err, bad); err == nil {
			err = os.Symlink(target, filepath.Join(to, link.Name()))
		}
	}
	return err
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, os.Chmod(to, 0o755), out.Close())
}

// Program returns the path of a program under test, such as "urdmad" or "examples/ep-server".
func (l *Lab) Program(name string) string { return filepath.Join(l.bin, name) }

// Start starts a process. Close ends it if it still runs.
func (l *Lab) Start(o Options, argv ...string) (*Process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := start(o, argv...)
	if err != nil {
		return nil, err
	}
	l.processes = slices.DeleteFunc(l.processes, func(p *Process) bool { return !p.Running() })
	l.processes = append(l.processes, p)
	return p, nil
}

// Close ends all processes that still run, the newest first, and removes the directory.
func (l *Lab) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range slices.Backward(l.processes) {
		p.Kill()
	}
	os.RemoveAll(l.Dir)
}
