package reliabletest

import (
	"bytes"
	"errors"
	"fmt"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// Peer is one end: a Conn, and a simple replacement of package trp around it.
type Peer struct {
	Conn reliable.Conn
	Name string

	// Emit takes a packet that leaves; when Emit returns the packet belongs to the peer again. Log, if set, takes
	// a line for each event.
	Emit func(*Packet)
	Log  func(format string, args ...any)

	Queued    int    // segments that the program still has to send
	Delivered uint64 // segments received in order and checked

	cfg     reliable.Config
	key     uint64 // of the content it sends
	peerKey uint64
	held    [][]byte // by psn % RecvWindow; nil: nothing is held
	inOrder wire.PSN // next PSN to be delivered, independent of the Conn's
	out     Packet
	content []byte
	dead    error
}

// NewPeer makes a peer whose content is derived from key, and which expects
// content derived from peerKey.
func NewPeer(name string, cfg reliable.Config, key, peerKey uint64) *Peer {
	p := &Peer{Name: name, cfg: cfg, key: key, peerKey: peerKey, inOrder: cfg.PeerISN}
	cfg.Rings = new(reliable.Rings)
	p.Conn.Init(cfg)
	p.held = make([][]byte, max(cfg.RecvWindow, 1))
	return p
}

func (p *Peer) log(format string, args ...any) {
	if p.Log != nil {
		p.Log(format, args...)
	}
}

// Receive processes an arriving packet. An error is a failure of the protocol, not of the network.
func (p *Peer) Receive(now reliable.Time, pkt *Packet) error {
	if pkt.Sum != pkt.checksum() {
		p.log("bad checksum")
		return nil
	}
	if !p.takeAck(now, pkt) {
		return nil
	}
	switch {
	case len(pkt.Payload) > 0:
		return p.takeData(now, pkt)
	case pkt.AR:
		p.Conn.OnAckRequested(now)
	}
	return nil
}

// takeAck reports whether the acknowledgement was possible.
func (p *Peer) takeAck(now reliable.Time, pkt *Packet) bool {
	var err error
	switch {
	case pkt.Sack:
		err = p.Conn.OnSack(now, pkt.Ack, pkt.Credits, pkt.Runs)
	default:
		err = p.Conn.OnAck(now, pkt.Ack, pkt.Credits)
	}
	if err != nil {
		p.log("ignored: %v", err)
	}
	return err == nil
}

func (p *Peer) takeData(now reliable.Time, pkt *Packet) error {
	verdict := p.Conn.Judge(pkt.PSN)
	p.Conn.OnData(now, pkt.PSN, pkt.AR, verdict)
	p.log("%v %d", verdict, uint32(pkt.PSN))
	slot := uint32(pkt.PSN) % uint32(len(p.held))
	switch verdict {
	case reliable.Deliver:
		if err := p.deliver(pkt.PSN, pkt.Payload); err != nil {
			return err
		}
		return p.deliverHeld()
	case reliable.Hold:
		if p.held[slot] != nil {
			return fmt.Errorf("%s: PSN %d held in a slot that is taken", p.Name, pkt.PSN)
		}
		p.held[slot] = append([]byte(nil), pkt.Payload...)
	}
	return nil
}

func (p *Peer) deliverHeld() error {
	for {
		psn, ok := p.Conn.NextHeld()
		if !ok {
			return nil
		}
		p.log("deliver held %d", uint32(psn))
		slot := uint32(psn) % uint32(len(p.held))
		if err := p.deliver(psn, p.held[slot]); err != nil {
			return err
		}
		p.held[slot] = nil
	}
}

// deliver checks order and every byte.
func (p *Peer) deliver(psn wire.PSN, payload []byte) error {
	if psn != p.inOrder {
		return fmt.Errorf("%s: delivered PSN %d, in order is %d", p.Name, psn, p.inOrder)
	}
	p.content = appendContent(p.content[:0], psn, tokenOf(p.peerKey, psn))
	if !bytes.Equal(payload, p.content) {
		return fmt.Errorf("%s: PSN %d holds % x, want % x", p.Name, psn, payload, p.content)
	}
	p.inOrder = psn.Add(1)
	p.Delivered++
	return nil
}

// Turn does what package trp does once it has read its receive queue. It returns reliable.ErrPeerDead when the
// connection gives up.
func (p *Peer) Turn(now reliable.Time) error {
	c := &p.Conn
	if err := c.Tick(now); err != nil {
		if p.dead == nil {
			p.log("%v", err)
		}
		p.dead = err
		return err
	}
	if c.ProbeDue(now) {
		p.emitPure(true)
	}
	for psn, token, ok := c.Retransmit(now); ok; psn, token, ok = c.Retransmit(now) {
		if token != tokenOf(p.key, psn) {
			return fmt.Errorf("%s: PSN %d resent with token %x", p.Name, psn, token)
		}
		p.emitData(psn, token)
	}
	p.sendNew(now)
	return p.sendAcks(now)
}

func (p *Peer) sendNew(now reliable.Time) {
	if p.Queued == 0 {
		return
	}
	for n := p.Conn.CanSend(now); n > 0 && p.Queued > 0; n-- {
		token := tokenOf(p.key, p.Conn.Next())
		psn := p.Conn.Send(now, 8+int(token%25), token)
		p.Queued--
		p.emitData(psn, token)
	}
}

var errAckLoop = errors.New("acknowledgements are due without end")

func (p *Peer) sendAcks(now reliable.Time) error {
	for range 4 {
		switch p.Conn.AckDue(now) {
		case reliable.AckNone:
			return nil
		case reliable.AckPlain:
			p.emitPure(false)
		case reliable.AckSack:
			p.emitSack()
		}
	}
	return fmt.Errorf("%s: %w", p.Name, errAckLoop)
}

func (p *Peer) emitData(psn wire.PSN, token uint64) {
	p.out = Packet{PSN: psn, AR: p.Conn.WantAR(p.Queued > 0), Payload: p.out.Payload[:0], Runs: p.out.Runs[:0]}
	p.out.Payload = appendContent(p.out.Payload, psn, token)
	p.emit()
}

func (p *Peer) emitPure(probe bool) {
	p.out = Packet{PSN: p.Conn.Next(), AR: probe, Payload: p.out.Payload[:0], Runs: p.out.Runs[:0]}
	p.emit()
}

func (p *Peer) emitSack() {
	p.out = Packet{Sack: true, PSN: p.Conn.Next(), Payload: p.out.Payload[:0], Runs: p.out.Runs[:0]}
	p.out.Runs = p.Conn.SackRuns(p.out.Runs)
	p.emit()
}

func (p *Peer) emit() {
	p.out.Ack, p.out.Credits = p.Conn.Header()
	p.out.Sum = p.out.checksum()
	p.Emit(&p.out)
}
