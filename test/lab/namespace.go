package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Namespace is a network namespace. A sleeping process keeps it open, so it disappears with the lab, even if the lab
// is killed. If an ordinary user makes it, it belongs to a user namespace, one for the whole lab, in which that user
// is root (user_namespaces(7)).
type Namespace struct {
	holder *Process
	user   *Process // keeps the user namespace open; nil if the lab runs as root
}

// NewNamespace makes a network namespace with its loopback interface up.
func (l *Lab) NewNamespace() (*Namespace, error) {
	ns := &Namespace{}
	if os.Getuid() != 0 {
		var err error
		if ns.user, err = l.userNamespace(); err != nil {
			return nil, err
		}
	}
	var err error
	if ns.holder, err = l.Start(Options{Env: os.Environ()},
		ns.inUser("unshare", "--net", "sleep", "infinity")...); err != nil {
		return nil, err
	}
	if err := ns.holder.leaves("net"); err != nil {
		return nil, err
	}
	return ns, ns.Run("ip", "link", "set", "lo", "up")
}

// userNamespace makes the lab's user namespace, once.
func (l *Lab) userNamespace() (*Process, error) {
	if l.user != nil {
		return l.user, nil
	}
	p, err := l.Start(Options{Env: os.Environ()}, "unshare", "--user", "--map-root-user", "sleep", "infinity")
	if err != nil {
		return nil, err
	}
	if err := p.leaves("user"); err != nil {
		return nil, err
	}
	// The mapping is written from outside the namespace.
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/uid_map", p.PID())); err == nil && len(text) > 0 {
			l.user = p
			return p, nil
		}
	}
	return nil, fmt.Errorf("no mapping in the user namespace: %s", strings.TrimSpace(p.Output()))
}

// Namespaces returns nil if network namespaces can be made here, or an error that says what they need.
func (l *Lab) Namespaces() error {
	if os.Getuid() == 0 {
		return nil
	}
	if _, err := l.userNamespace(); err != nil {
		return fmt.Errorf("network namespaces take root, or user namespaces, which this machine refuses: %w", err)
	}
	return nil
}

// leaves waits until the process has left our own namespace of one kind (a name in /proc/PID/ns).
func (p *Process) leaves(kind string) error {
	own, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if now, err := os.Readlink(p.namespace(kind)); err == nil && now != own {
			return nil
		}
		if !p.Running() {
			break
		}
	}
	return fmt.Errorf("no %s namespace: %s", kind, strings.TrimSpace(p.Output()))
}

func (p *Process) namespace(kind string) string { return fmt.Sprintf("/proc/%d/ns/%s", p.PID(), kind) }

// inUser returns argv as a command line that runs in the user namespace, if there is one.
func (n *Namespace) inUser(argv ...string) []string {
	if n.user == nil {
		return argv
	}
	return append([]string{"nsenter", "--user=" + n.user.namespace("user"), "--preserve-credentials", "--"}, argv...)
}

// PID returns a process in the namespace, as the argument of ip link set netns.
func (n *Namespace) PID() string { return strconv.Itoa(n.holder.PID()) }

// Command returns argv as a command line that runs in the namespace.
func (n *Namespace) Command(argv ...string) []string {
	if n == nil {
		return argv
	}
	return n.inUser(append(n.enter(), argv...)...)
}

// enter returns the beginning of a command line that enters the network namespace, for a process that is already in
// the user namespace.
func (n *Namespace) enter() []string {
	return []string{"nsenter", "--net=" + n.holder.namespace("net"), "--"}
}

// Run runs a short command in the namespace.
func (n *Namespace) Run(argv ...string) error {
	argv = n.Command(argv...)
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Veth makes two network namespaces joined by a pair of interfaces, veth0 in
// each.
func (l *Lab) Veth(mtu int) (a, b *Namespace, err error) {
	if a, err = l.NewNamespace(); err != nil {
		return nil, nil, err
	}
	if b, err = l.NewNamespace(); err != nil {
		return nil, nil, err
	}
	return a, b, veth(a, b, mtu)
}

// veth joins two namespaces by a pair of interfaces, veth0 in each.
func veth(a, b *Namespace, mtu int) error { return vethNamed(a, "veth0", b, "veth0", mtu) }

// vethNamed is veth with other names for the interfaces.
func vethNamed(a *Namespace, nameA string, b *Namespace, nameB string, mtu int) error {
	size := strconv.Itoa(mtu)
	if err := a.Run("ip", "link", "add", nameA, "mtu", size, "type", "veth",
		"peer", "name", nameB, "mtu", size, "netns", b.PID()); err != nil {
		return err
	}
	if err := a.Run("ip", "link", "set", nameA, "up"); err != nil {
		return err
	}
	return b.Run("ip", "link", "set", nameB, "up")
}
