package lab

import (
	"bytes"
	"fmt"
	"os"
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

// StartServer starts the server alone and waits until it waits for clients.
func (p Pair) StartServer() (*Process, error) {
	server, err := p.ServerNode.Exec(p.Server...)
	if err != nil {
		return nil, err
	}
	server.settle(p.Server[0])
	return server, nil
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

// settle waits until a server has gone to sleep and stays so, which is when
// it waits for clients: none of Debian's programs says that it listens.
func (p *Process) settle(program string) {
	const still = 40 * time.Millisecond
	var last string
	since := time.Now()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline) && p.Running(); time.Sleep(4 * time.Millisecond) {
		state, asleep := p.state(program)
		if !asleep || state != last {
			last, since = state, time.Now()
			continue
		}
		if time.Since(since) >= still {
			return
		}
	}
}

// state is the processor time the program took (proc(5), stat: utime and
// stime), and whether all of it sleeps. Before exec it isn't the program yet.
func (p *Process) state(program string) (state string, asleep bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return "", false
	}
	name := program[strings.LastIndexByte(program, '/')+1:]
	comm := string(stat[bytes.IndexByte(stat, '(')+1 : bytes.LastIndexByte(stat, ')')])
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if !strings.HasPrefix(name, comm) || len(fields) < 13 {
		return "", false
	}
	return fields[11] + " " + fields[12], fields[0] == "S"
}
