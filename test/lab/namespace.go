package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Namespace is a network namespace. A sleeping process holds it open, so it
// goes away with the lab, however that ends.
type Namespace struct {
	holder *Process
}

// NewNamespace makes a network namespace with its loopback interface up.
func (l *Lab) NewNamespace() (*Namespace, error) {
	holder, err := l.Start(Options{Env: os.Environ()}, "unshare", "--net", "sleep", "infinity")
	if err != nil {
		return nil, err
	}
	ns := &Namespace{holder}
	if err := ns.wait(); err != nil {
		return nil, err
	}
	return ns, ns.Run("ip", "link", "set", "lo", "up")
}

// wait waits until the holder has left our own namespace.
func (n *Namespace) wait() error {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if now, err := os.Readlink(n.path()); err == nil && now != own {
			return nil
		}
		if !n.holder.Running() {
			break
		}
	}
	return fmt.Errorf("no network namespace: %s", strings.TrimSpace(n.holder.Output()))
}

func (n *Namespace) path() string { return fmt.Sprintf("/proc/%d/ns/net", n.holder.PID()) }

// Command is argv as a command line that runs inside the namespace.
func (n *Namespace) Command(argv ...string) []string {
	if n == nil {
		return argv
	}
	return append([]string{"nsenter", "--net=" + n.path(), "--"}, argv...)
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
func veth(a, b *Namespace, mtu int) error {
	pid := func(n *Namespace) string { return strconv.Itoa(n.holder.PID()) }
	size := strconv.Itoa(mtu)
	if err := a.Run("ip", "link", "add", "veth0", "mtu", size, "type", "veth",
		"peer", "name", "veth0", "mtu", size, "netns", pid(b)); err != nil {
		return err
	}
	for _, n := range []*Namespace{a, b} {
		if err := n.Run("ip", "link", "set", "veth0", "up"); err != nil {
			return err
		}
	}
	return nil
}
