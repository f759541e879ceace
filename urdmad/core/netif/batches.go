package netif

import (
	"maps"
	"net/netip"
	"sync"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
)

// Batches tells to which peers datagrams must not leave in one send, because what
// the kernel or a device cuts out of it does not arrive: there are kernels that
// spoil all but the first. Nothing but the loss shows that, so where it is heavy,
// datagrams go one by one for a while; if it ends with that, and comes back when
// they go together again, they stay so (docs/WIRE.md chapter 11). A path that was
// cut for a moment loses as much, but only once. The worker owns it, but for Alone.
type Batches struct {
	// Blamed is called when it turns out that datagrams reach a peer only one by
	// one; nil: nobody wants to know.
	Blamed func(peer netip.Addr)
	// Datagrams: the port is one of datagrams. It takes padding.
	Datagrams bool

	// goBack: what is lost is sent again with all behind it. A loss now and then has as much as
	// half of the packets sent again, and a send of which only the first arrives nearly all.
	goBack bool

	peers map[netip.Addr]*batch

	mu    sync.Mutex                // guards what follows
	blame map[netip.Addr]clock.Time // until when peers get datagrams one by one, some of it past
}

// Alone is how many peers get datagrams one by one at now; any goroutine may ask. An
// entry expires by time: no packet announces the end of a peer.
func (b *Batches) Alone(now clock.Time) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, until := range b.blame {
		if until > now {
			n++
		}
	}
	return n
}

// note has Alone count a peer until then.
func (b *Batches) note(peer netip.Addr, now, until clock.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.blame) >= mostPeers {
		maps.DeleteFunc(b.blame, func(_ netip.Addr, until clock.Time) bool { return until <= now })
	}
	if b.blame == nil || len(b.blame) >= mostPeers {
		b.blame = map[netip.Addr]clock.Time{}
	}
	b.blame[peer] = until
}

const (
	// suspectLost of suspectOf packets sent again are heavy loss, or suspectBack where each loss
	// has many sent again; fewer than leastLost say nothing.
	suspectLost, suspectBack, suspectOf = 4, 9, 12
	leastLost                           = 32
	// recentPackets are looked at.
	recentPackets = 512
	// cleanRun packets in a row that were not sent before show that loss has ended;
	// within trialPackets, or sending together was not what is wrong. It has to come
	// back within as many packets that go together.
	cleanRun     = 64
	trialPackets = 4096
	// aloneFor is how long datagrams go one by one before it is tried again, and
	// trustFor how long a suspicion that was wrong is not raised anew.
	aloneFor = 600 * clock.Second
	trustFor = 60 * clock.Second
	// mostPeers are remembered.
	mostPeers = 4096
)

type batchState uint8

const (
	together batchState = iota
	onTrial             // one by one, to see what that changes
	onProof             // together again, to see whether the loss that ended comes back
	alone
)

// batch is what is known of one peer.
type batch struct {
	all   *Batches
	peer  netip.Addr
	state batchState
	sent  int        // packets, lately or of the trial
	proof int        // packets since it began
	again int        // of them, how many were sent before
	clean int        // in a row that were not
	until clock.Time // of alone, and of trust
}

// to is the record of a peer.
func (b *Batches) to(peer netip.Addr) *batch {
	if e := b.peers[peer]; e != nil {
		return e
	}
	if len(b.peers) == mostPeers { // connections keep theirs
		maps.DeleteFunc(b.peers, func(_ netip.Addr, e *batch) bool { return e.state == together })
	}
	if b.peers == nil || len(b.peers) == mostPeers {
		b.peers = map[netip.Addr]*batch{}
	}
	e := &batch{all: b, peer: peer}
	b.peers[peer] = e
	return e
}

// send counts a packet and says how it has to go.
func (b *batch) send(now clock.Time) port.Flags {
	b.sent++
	b.clean++
	switch b.state {
	case together, onProof:
		if b.sent >= recentPackets {
			b.sent, b.again = b.sent/2, b.again/2
		}
		if b.state == onProof {
			b.proves(now)
		}
		return 0
	case onTrial:
		switch {
		case b.clean >= cleanRun:
			b.become(onProof, now)
		case b.sent >= trialPackets:
			b.become(together, now+trustFor) // losing as before
		}
	case alone:
		if now >= b.until {
			b.become(together, now)
		}
	}
	return port.TxAlone
}

// sendAgain counts the next packet as one that was lost before.
func (b *batch) sendAgain(now clock.Time) {
	b.again++
	b.clean = -1
	suspect := suspectLost
	if b.all.goBack {
		suspect = suspectBack
	}
	if now < b.until || b.again < leastLost || b.again*suspectOf < b.sent*suspect {
		return
	}
	switch b.state {
	case together:
		b.become(onTrial, now)
	case onProof:
		b.blame(now)
	}
}

// proves counts a packet of the proof: the loss that does not come back had another
// cause.
func (b *batch) proves(now clock.Time) {
	if b.proof++; b.proof >= trialPackets {
		b.become(together, now)
	}
}

// blame ends a proof: the loss ended with sending one by one, and came back.
func (b *batch) blame(now clock.Time) {
	b.become(alone, now+aloneFor)
	b.all.note(b.peer, now, b.until)
	if b.all.Blamed != nil {
		b.all.Blamed(b.peer)
	}
}

func (b *batch) become(s batchState, until clock.Time) {
	*b = batch{all: b.all, peer: b.peer, state: s, until: until}
}
