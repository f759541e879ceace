package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"urdma/test/relay"
)

// udpPort is the port number of all urdmads (docs/WIRE.md chapter 11).
const udpPort = 30035

// Relayed is two hosts, each joined by veth to a third host, which relays UDP datagrams between them (package relay).
// The Address of each is the relay's, at which the other one reaches it.
type Relayed struct {
	A, B  *Node
	Relay *Process
}

// JoinRelayed makes the hosts and starts both urdmads, each on a UDP socket, as users without capabilities; fate has
// the flags of the relay.
func (l *Lab) JoinRelayed(settings Config, fate ...string) (*Relayed, error) {
	middle, err := l.NewNamespace()
	if err != nil {
		return nil, err
	}
	r := &Relayed{}
	ends := [2]**Node{&r.A, &r.B}
	argv := append([]string{l.Program("udprelay")}, fate...)
	for i, end := range ends {
		if *end, err = l.relayedHost(i, middle, settings); err != nil {
			return nil, err
		}
		argv = append(argv, fmt.Sprintf("198.18.%d.254:%d=198.18.%d.1:%d", i+1, udpPort, i+1, udpPort))
	}
	if r.Relay, err = l.startRelay(middle, argv); err != nil {
		return nil, err
	}
	return r, startDaemons([]*Node{r.A, r.B})
}

// relayedHost makes host i, 198.18.i+1.1; the relay's host has the other end of its link.
func (l *Lab) relayedHost(i int, middle *Namespace, settings Config) (*Node, error) {
	ns, err := l.NewNamespace()
	if err != nil {
		return nil, err
	}
	uid := 0
	if os.Getuid() == 0 {
		uid = OrdinaryUID - i
	}
	n, err := l.newNode(string(rune('a'+i)), fmt.Sprintf("198.18.%d.254", 2-i), ns, uid)
	if err != nil {
		return nil, err
	}
	far := fmt.Sprintf("host%d", i)
	if err := vethNamed(ns, "veth0", middle, far, UDP.mtu()); err != nil {
		return nil, err
	}
	own := fmt.Sprintf("198.18.%d.1", i+1)
	err = errors.Join(ns.Run("ip", "address", "add", own+"/24", "dev", "veth0"),
		middle.Run("ip", "address", "add", fmt.Sprintf("198.18.%d.254/24", i+1), "dev", far),
		n.configure(portConfig(UDP, UDP.Device, own, settings)))
	return n, err
}

func (l *Lab) startRelay(middle *Namespace, argv []string) (*Process, error) {
	p, err := l.Start(Options{Env: os.Environ()}, middle.Command(argv...)...)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(Patience); time.Now().Before(end) && p.Running(); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(p.Output(), relay.Ready) {
			return p, nil
		}
	}
	p.Kill()
	return nil, fmt.Errorf("the relay is not ready:\n%s", p.Output())
}

// Stop ends the relay and returns its report.
func (r *Relayed) Stop() (c relay.Counts, err error) {
	r.Relay.Signal(syscall.SIGTERM)
	if err := r.Relay.Wait(Patience); err != nil {
		return c, err
	}
	_, line, _ := strings.Cut(r.Relay.Output(), relay.Ready)
	return c, json.Unmarshal([]byte(line), &c)
}
