package bystander

import (
	"context"
	"errors"
	"time"
)

// Pair is both ends, in this process.
type Pair struct {
	Server *Server
	Client *Client
	stop   chan struct{}
	served running
	worked running
}

// running is one working end; err is valid once done is closed.
type running struct {
	done chan struct{}
	err  error
}

func (r *running) run(end func() error) {
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		r.err = end()
	}()
}

// New connects two clients, of two urdmads or of one, and lets them work until Stop. The address is the server's
// "host:port"; port 0 chooses a free one.
func New(ctx context.Context, server, client, address string, seed uint64) (*Pair, error) {
	p := &Pair{stop: make(chan struct{})}
	var err error
	if p.Server, err = Serve(server, address, seed); err != nil {
		return nil, err
	}
	accepted := make(chan error, 1)
	accepting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { accepted <- p.Server.Accept(accepting) }()
	if p.Client, err = Dial(ctx, client, p.Server.Address(), seed); err != nil {
		cancel()
		<-accepted
		p.Server.Close()
		return nil, err
	}
	if err = <-accepted; err != nil {
		p.Server.Close()
		p.Client.Close()
		return nil, err
	}
	p.Client.Pause = 2 * time.Millisecond
	p.served.run(func() error { return p.Server.Run(ctx) })
	p.worked.run(func() error { return p.Client.Run(ctx, p.stop) })
	return p, nil
}

// Ended is closed when the working end has stopped or failed; Err then returns the reason.
func (p *Pair) Ended() <-chan struct{} { return p.worked.done }

// Err returns the error of the working end, nil if it has stopped.
func (p *Pair) Err() error { return p.worked.err }

// Stop lets both ends finish and returns the errors of both.
func (p *Pair) Stop() error {
	close(p.stop)
	<-p.worked.done
	<-p.served.done
	return errors.Join(p.worked.err, p.served.err)
}

// Advances waits until the pair has done n more rounds.
func (p *Pair) Advances(n int64, limit time.Duration) bool {
	from := p.Client.Rounds()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if p.Client.Rounds() >= from+n {
			return true
		}
	}
	return false
}

// Break ends the connection during its work, from the named end.
func (p *Pair) Break(server bool) {
	conn := p.Client.conn
	if server {
		conn = p.Server.conn
	}
	_ = conn.Disconnect() // fails if it has ended already
	<-p.worked.done
	<-p.served.done
}

// Close ends both clients. Their memory disappears with them, so the ends stop first.
func (p *Pair) Close() {
	p.Break(false)
	p.Client.Close()
	p.Server.Close()
}
