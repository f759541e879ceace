package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Node is a host: a urdmad, its configuration, and the place in which its programs run.
type Node struct {
	// Name is unique in the lab.
	Name string
	// Address is the port's address, IPv4 or IPv6 depending on the wire.
	Address string
	// Net is the node's network namespace; nil: the machine's.
	Net *Namespace
	// UID is the user of urdmad and the programs; 0: the user that runs the lab.
	UID int
	// Daemon is the running urdmad, or the last one that ran.
	Daemon *Process

	lab *Lab
	dir string
}

// Config is the contents of urdma.json, before they are written.
type Config map[string]any

func (l *Lab) newNode(name, address string, ns *Namespace, uid int) (*Node, error) {
	n := &Node{Name: name, Address: address, Net: ns, UID: uid, lab: l, dir: filepath.Join(l.Dir, name)}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return nil, err
	}
	if uid != 0 && os.Getuid() == 0 {
		if err := os.Chown(n.dir, uid, uid); err != nil {
			return nil, err
		}
	}
	l.nodes = append(l.nodes, n)
	return n, nil
}

// Socket returns the path of the node's control socket.
func (n *Node) Socket() string { return filepath.Join(n.dir, "urdma", "urdmad.sock") }

// Directory returns the node's own directory, to which its programs may write.
func (n *Node) Directory() string { return n.dir }

func (n *Node) configFile() string { return filepath.Join(n.dir, "urdma.json") }

// configure writes the node's urdma.json.
func (n *Node) configure(c Config) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(n.configFile(), text, 0o644)
}

// Change changes one setting in the node's urdma.json, and sends SIGHUP to a running urdmad.
func (n *Node) Change(setting string, value any) error {
	text, err := os.ReadFile(n.configFile())
	if err != nil {
		return err
	}
	var c Config
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	c[setting] = value
	return n.configure(c)
}

// Program returns the path of a program in the build directory.
func (n *Node) Program(name string) string { return n.lab.Program(name) }

func (n *Node) options() Options {
	env := []string{"XDG_RUNTIME_DIR=" + n.dir, "TMPDIR=" + n.dir, "HOME=" + n.dir, "LC_ALL=C"}
	for _, name := range []string{"PATH", "URDMA_LOG", "GOGC"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return Options{UID: n.UID, Env: env, Dir: n.dir}
}

// readyLine is urdmad's line when programs can find it.
const readyLine = "urdmad is ready"

// StartDaemon starts urdmad with the node's configuration and waits until it is ready. If the kernel has not yet freed
// the queue of a urdmad that has ended (dpdk.BusyError), it starts urdmad again, as the service units do.
func (n *Node) StartDaemon() error {
	for end := time.Now().Add(Patience); ; time.Sleep(100 * time.Millisecond) {
		err := n.StartDaemonOnce()
		if err == nil || !strings.Contains(err.Error(), "(exit status 1)") ||
			!strings.Contains(err.Error(), "queue setup failed") || time.Now().After(end) {
			return err
		}
	}
}

// StartDaemonOnce is StartDaemon without a second try.
func (n *Node) StartDaemonOnce() error {
	p, err := n.Start(n.lab.Program("urdmad"), "--config", n.configFile())
	if err != nil {
		return err
	}
	n.Daemon = p
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		switch {
		case strings.Contains(p.Output(), readyLine):
			return nil
		case !p.Running():
			return fmt.Errorf("urdmad of %s ended (%w):\n%s", n.Name, p.err, Tail(p.Output(), 30))
		}
	}
	return fmt.Errorf("urdmad of %s is not ready after %v:\n%s", n.Name, Patience, p.stacks())
}

// WaitLink waits until programs see the node's port up; on a memif, until the other end exists.
func (n *Node) WaitLink(limit time.Duration) error {
	var out string
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var err error
		if out, err = n.Run(Patience, "ibv_devinfo"); err != nil {
			return err
		}
		if strings.Contains(out, "PORT_ACTIVE") {
			return nil
		}
	}
	return fmt.Errorf("the port of %s is not up after %v:\n%s", n.Name, limit, Tail(out, 30))
}

// StopDaemon ends urdmad by SIGTERM, and checks that it ends cleanly.
func (n *Node) StopDaemon() error {
	n.Daemon.Signal(syscall.SIGTERM)
	if err := n.Daemon.Wait(Patience); err != nil {
		return fmt.Errorf("urdmad of %s did not end cleanly on SIGTERM: %w:\n%s", n.Name, err, Tail(n.Daemon.Output(), 30))
	}
	if _, err := os.Lstat(n.Socket()); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("urdmad of %s left its socket %s", n.Name, n.Socket())
	}
	return nil
}

// Start starts a program on the node, without urdma.
func (n *Node) Start(argv ...string) (*Process, error) { return n.start(n.options(), argv...) }

func (n *Node) start(o Options, argv ...string) (*Process, error) {
	if n.Net != nil {
		argv = n.Net.inUser(append(n.Enter(), argv...)...)
		o.UID = 0 // entering the namespace needs root
	}
	return n.lab.Start(o, argv...)
}

// Enter returns the beginning of a command line that runs on the node, as its user, for a process that
// Namespace.Command has started. It is empty if the node has no namespace.
func (n *Node) Enter() []string {
	if n.Net == nil {
		return nil
	}
	argv := n.Net.enter()
	if n.UID != 0 {
		argv = append(argv, "setpriv", fmt.Sprintf("--reuid=%d", n.UID), fmt.Sprintf("--regid=%d", n.UID), "--clear-groups",
			"--no-new-privs",
			"--bounding-set=-all", "--inh-caps=-all", "--")
	}
	return argv
}

// Exec starts a program under urdma exec.
func (n *Node) Exec(argv ...string) (*Process, error) {
	o := n.options()
	if n.lab.FastClock && slices.ContainsFunc(argv, takesClock) {
		o.Env = append(o.Env, "LD_PRELOAD="+n.lab.Program("clock.so"))
	}
	return n.start(o, append([]string{n.lab.Program("urdma"), "exec", "--"}, n.lab.resolve(argv)...)...)
}

// Urdma runs the urdma command on the node and returns its output.
func (n *Node) Urdma(args ...string) (string, error) {
	p, err := n.Start(append([]string{n.lab.Program("urdma")}, args...)...)
	if err != nil {
		return "", err
	}
	if err := p.Wait(Patience); err != nil {
		return p.Output(), fmt.Errorf("%w:\n%s", err, p.Output())
	}
	return p.Output(), nil
}

// Run runs a program under urdma exec to its end and returns its output.
func (n *Node) Run(limit time.Duration, argv ...string) (string, error) {
	p, err := n.Exec(argv...)
	if err != nil {
		return "", err
	}
	if err := p.Wait(limit); err != nil {
		return p.Output(), fmt.Errorf("%w\n%s\n  urdmad of %s:\n%s", err, Tail(p.Output(), 30), n.Name,
			Tail(n.Daemon.Output(), 20))
	}
	return p.Output(), nil
}

// resolve replaces the names of examples by their paths.
func (l *Lab) resolve(argv []string) []string {
	if strings.HasPrefix(argv[0], "examples/") {
		argv = append([]string{l.Program(argv[0])}, argv[1:]...)
	}
	if runtime := os.Getenv("URDMA_SANITIZER"); runtime != "" { // the sanitizer's runtime must be loaded first
		argv = append([]string{"sh", "-c", `LD_PRELOAD=$URDMA_SANITIZER:$LD_PRELOAD exec "$0" "$@"`}, argv...)
	}
	return argv
}
