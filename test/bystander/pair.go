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
	served chan error
	worked chan error
}

// New connects two clients, of two urdmads or of one, and lets them work until
// Stop. The address is the server's "host:port"; port 0 takes a free one.
func New(ctx context.Context, server, client, address string, seed uint64) (*Pair, error) {
	p := &Pair{stop: make(chan struct{}), served: make(chan error, 1), worked: make(chan error, 1)}
	var err error
	if p.Server, err = Serve(server, address, seed); err != nil {
		return nil, err
	}
	accepted := make(chan error, 1)
	go func() { accepted <- p.Server.Accept(ctx) }()
	if p.Client, err = Dial(ctx, client, p.Server.Address(), seed); err != nil {
		p.Server.Close()
		return nil, err
	}
	if err = <-accepted; err != nil {
		p.Close()
		return nil, err
	}
	p.Client.Pause = 2 * time.Millisecond
	go func() { p.served <- p.Server.Run(ctx) }()
	go func() { p.worked <- p.Client.Run(ctx, p.stop) }()
	return p, nil
}

// Ended is closed or receives as soon as the working end fails; it is for waiting
// for an end that has to come. Call it instead of Stop.
func (p *Pair) Ended() <-chan error { return p.worked }

// Stop lets both ends finish and gives what went wrong with either.
func (p *Pair) Stop() error {
	close(p.stop)
	return errors.Join(<-p.worked, <-p.served)
}

// Advances waits until the pair has done n rounds more.
func (p *Pair) Advances(n int64, limit time.Duration) bool {
	from := p.Client.Rounds()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if p.Client.Rounds() >= from+n {
			return true
		}
	}
	return false
}

// Close ends both clients.
func (p *Pair) Close() {
	p.Client.Close()
	p.Server.Close()
}
