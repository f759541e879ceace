package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Pair is a server and its client.
type Pair struct {
	ServerNode, ClientNode *Node
	Server, Client         []string
	// TCPPort is the TCP port at which the server listens; 0 if it listens with rdma_cm.
	TCPPort int
	// Limit is the longest time that each of the two may take; 0: two minutes.
	Limit time.Duration
}

// ShownAs is the transport as which both programs see the ports: iwarp, ib or roce.
func (p *Pair) ShownAs(transport string) {
	env := []string{"env", "URDMA_TRANSPORT=" + transport}
	p.Server, p.Client = slices.Concat(env, p.Server), slices.Concat(env, p.Client)
}

// Result has the outputs of a pair.
type Result struct {
	Server, Client string
	// Used is the processor time of both programs from their start.
	Used time.Duration
}

// Run starts the server, then the client as soon as the server listens, and waits until both have ended with status
// 0.
func (p Pair) Run() (Result, error) {
	if p.Limit == 0 {
		p.Limit = 2 * time.Minute
	}
	server, err := p.StartServer()
	if err != nil {
		return Result{}, err
	}
	client, err := p.ClientNode.Exec(p.Client...)
	if err != nil {
		server.Kill()
		return Result{}, err
	}
	clientErr := client.Wait(p.Limit)
	// A server whose client has failed may wait for ever. That is not its fault.
	limit := p.Limit
	if clientErr != nil {
		limit = time.Second
	}
	serverErr := server.Wait(limit)
	r := Result{server.Output(), client.Output(), server.Used() + client.Used()}
	if clientErr != nil || serverErr != nil {
		return r, p.report(r, clientErr, serverErr)
	}
	return r, nil
}

// StartServer starts only the server and waits until it listens. None of Debian's programs prints that, but urdmad
// knows.
func (p Pair) StartServer() (*Process, error) {
	server, err := p.ServerNode.Exec(p.Server...)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(Patience); time.Now().Before(end) && server.Running(); time.Sleep(20 * time.Millisecond) {
		listens, err := p.listens(server)
		if err != nil {
			server.Kill()
			return nil, err
		}
		if listens {
			return server, nil
		}
	}
	server.Kill()
	return nil, fmt.Errorf("%s does not listen:\n%s", server.name, Tail(server.Output(), 20))
}

// listens reports whether the server waits for its client.
func (p Pair) listens(server *Process) (bool, error) {
	if p.TCPPort != 0 {
		return listensTCP(server.PID(), p.TCPPort), nil
	}
	return p.ServerNode.listens(server)
}

// listensTCP looks for a port number among the listening sockets of a process's network namespace.
func listensTCP(pid, port int) bool {
	for _, table := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table)) // empty if the process has ended
		for _, line := range strings.Split(string(text), "\n") {
			f := strings.Fields(line) // fields: number, local address, remote address, state
			if len(f) > 3 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == "0A" {
				return true
			}
		}
	}
	return false
}

// listens asks urdmad whether the process has a listening rdma_cm id. test/core/coreurdmad can't be asked, but logs
// it.
func (n *Node) listens(p *Process) (bool, error) {
	out, err := n.Urdma("show", "listener", "--json")
	if strings.Contains(out, syscall.EOPNOTSUPP.Error()) {
		return strings.Contains(n.Daemon.Output(), fmt.Sprintf("msg=\"a program listens\" pid=%d\n", p.PID())), nil
	}
	if strings.Contains(out, "does not answer within") {
		return false, nil // on a busy machine; it is asked again
	}
	if err != nil {
		return false, err
	}
	var listeners []struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(out), &listeners); err != nil {
		return false, fmt.Errorf("urdma show listener: %w in %s", err, out)
	}
	for _, l := range listeners {
		if l.PID == p.PID() {
			return true, nil
		}
	}
	return false, nil
}

func (p Pair) report(r Result, client, server error) error {
	var out strings.Builder
	fmt.Fprintf(&out, "client: %v\n%s\n", client, Tail(r.Client, 20))
	fmt.Fprintf(&out, "  server: %v\n%s\n", server, Tail(r.Server, 20))
	fmt.Fprintf(&out, "  urdmad of %s:\n%s\n", p.ServerNode.Name, Tail(p.ServerNode.Daemon.Output(), 15))
	if p.ClientNode != p.ServerNode {
		fmt.Fprintf(&out, "  urdmad of %s:\n%s\n", p.ClientNode.Name, Tail(p.ClientNode.Daemon.Output(), 15))
	}
	return fmt.Errorf("%s", out.String())
}
