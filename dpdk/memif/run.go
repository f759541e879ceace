package memif

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// newLink makes an empty link with the next epoch. Epoch 0 is reserved for private buffers.
func (p *Port) newLink(c control, peer string) *link {
	epoch := p.epoch.Add(1) % epochs
	if epoch == 0 {
		epoch = p.epoch.Add(1) % epochs
	}
	l := &link{epoch: epoch, peer: peer, ctl: c}
	l.share(len(p.queues))
	return l
}

// closeWith makes Close end the connection, so that no call waits on it.
func (p *Port) closeWith(c control) (stop func() bool) {
	return context.AfterFunc(p.ctx, func() { c.conn.CloseRead() })
}

// runLink passes a link to the workers and watches its socket until it ends.
func (p *Port) runLink(l *link) {
	p.opt.Log.Info("memif link up", "port", p.opt.Name, "peer", l.peer, "slots", l.tx[0].size(), "rings_out", len(l.tx),
		"rings_in", l.ringsIn())
	p.deliver(l)
	err := p.watchLink(l)
	p.withdraw(l)
	if p.ctx.Err() != nil {
		l.ctl.send(disconnectMsg("port closed"), -1)
		return
	}
	if cause := l.cause.Load(); cause != nil {
		l.ctl.send(disconnectMsg(reasonOf(*cause)), -1)
		p.faults.report(p, "memif peer broke the protocol", *cause)
		return
	}
	p.opt.Log.Info("memif link down", "port", p.opt.Name, "peer", l.peer, "reason", err)
}

// watchLink waits for the end of a link and returns its cause.
func (p *Port) watchLink(l *link) error {
	l.ctl.conn.SetReadDeadline(time.Time{})
	m, fd, err := l.ctl.recv()
	l.ctl.drop(fd)
	if err != nil {
		return err
	}
	if m.kind() == kindDisconnect {
		_, reason := m.disconnect()
		return fmt.Errorf("peer disconnected: %q", reason)
	}
	err = fmt.Errorf("memif: got %v on a working link", m.kind())
	p.counters.RxErrors.Add(1)
	l.cause.CompareAndSwap(nil, &err)
	return err
}

// next waits for any message within replyWait.
func (c control) next() (m message, fd int, err error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(replyWait)); err != nil {
		return m, -1, err
	}
	return c.recv()
}

// reasonOf truncates an error to the length of a disconnect message's text.
func reasonOf(err error) string {
	s := err.Error()
	return s[:min(len(s), reasonSize-1)]
}

// faultLog limits log lines about a misbehaving or absent peer.
type faultLog struct {
	log *slog.Logger

	mu      sync.Mutex
	last    time.Time
	hidden  int
	waitFor string
}

// report counts an error, and logs it at most once a second.
func (f *faultLog) report(p *Port, what string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.last) < time.Second {
		f.hidden++
		return
	}
	f.log.Warn(what, "port", p.opt.Name, "socket", p.opt.SocketPath, "error", err, "unreported", f.hidden)
	f.last, f.hidden = now, 0
}

// waiting logs once why no server can be reached; an absent server is not an error.
func (f *faultLog) waiting(p *Port, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reason := err.Error()
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		reason = "no server listens yet"
	}
	if reason != f.waitFor {
		f.waitFor = reason
		f.log.Info("memif waits for its server", "port", p.opt.Name, "socket", p.opt.SocketPath, "reason", reason)
	}
}
