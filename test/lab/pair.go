package lab

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Pair is a server and the client that talks to it.
type Pair struct {
	ServerNode, ClientNode *Node
	Server, Client         []string
	// Limit is how long each of the two may take. 0 stands for a minute.
	Limit time.Duration
}

// Result is what a pair printed.
type Result struct {
	Server, Client string
}

// Run starts the server, then the client once the server waits for it, and
// waits for both to end with status 0.
func (p Pair) Run() (Result, error) {
	if p.Limit == 0 {
		p.Limit = time.Minute
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
	// A server whose client failed may wait for ever; that is not its fault.
	limit := p.Limit
	if clientErr != nil {
		limit = time.Second
	}
	serverErr := server.Wait(limit)
	r := Result{server.Output(), client.Output()}
	if clientErr != nil || serverErr != nil {
		return r, p.report(r, clientErr, serverErr)
	}
	return r, nil
}

// StartServer starts the server alone and waits until it listens: none of
// Debian's programs says so, but urdmad knows.
func (p Pair) StartServer() (*Process, error) {
	server, err := p.ServerNode.Exec(p.Server...)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && server.Running(); time.Sleep(5 * time.Millisecond) {
		listens, err := p.ServerNode.listens(server)
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

// listens asks urdmad whether the process has a listening rdma_cm id.
func (n *Node) listens(p *Process) (bool, error) {
	out, err := n.Urdma("show", "listener", "--json")
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
