package netif

import (
	"maps"
	"net/netip"
	"sync"

	"urdma/dpdk/port"
	"urdma/urdmad/core/clock"
)

// Batches decides to which peers datagrams must not be sent in batches, because the datagrams that the
// kernel or a device cuts out of one send do not arrive: some kernels corrupt all except the first. Only
// the loss shows that. So if loss is heavy, datagrams are sent singly until the loss ends, then in batches
// until it returns, several times; if it always does, they are sent singly for longer (docs/WIRE.md
// chapter 11). A path that was interrupted for a moment, or drops a whole send now and then, loses as much,
// but not each time that batches begin. The worker owns Batches; only Alone may be called by others.
type Batches struct {
	// Blamed is called when a peer is found to receive only datagrams sent singly; nil: not called.
	Blamed func(peer netip.Addr)

	// goBack: a lost packet is resent with all packets after it. Then occasional loss causes up to half of
	// all packets to be resent, and a send of which only the first datagram arrives causes nearly all to be
	// resent.
	goBack bool

	peers map[netip.Addr]*batch

	mu    sync.Mutex                // guards blame
	blame map[netip.Addr]clock.Time // until when datagrams to peers are sent singly; some entries have expired
}

// Alone returns to how many peers datagrams are sent singly now; any goroutine may call it. An entry
// expires by time: no packet announces the end of a peer.
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

// note makes Alone count a peer until the given time.
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
	// Loss is heavy if suspectLost of suspectOf packets were resent, or suspectBack if each loss causes
	// many retransmissions; a decision needs at least leastLost.
	suspectLost, suspectBack, suspectOf = 3, 9, 12
	leastLost                           = 32
	// recentPackets is the number of packets over which loss is measured.
	recentPackets = 512
	// cleanRun consecutive packets without a retransmission, within trialPackets, show that the loss has
	// ended; otherwise batches were not the cause. Then the loss must return within as many packets sent in
	// batches, and be heavy among all of them. Both must happen proofs times, because one lost send at the
	// beginning is as heavy; a proof without leastLost retransmissions does not count.
	cleanRun     = 64
	trialPackets = 4096
	proofs       = 4
	// aloneFor is how long datagrams are sent singly before batches are tried again, and trustFor how long
	// a refuted suspicion is not raised again.
	aloneFor = 600 * clock.Second
	trustFor = 60 * clock.Second
	// mostPeers bounds the peers that are remembered.
	mostPeers = 4096
)

type batchState uint8

const (
	together batchState = iota
	onTrial             // singly, to see whether the loss ends
	onProof             // in batches again, to see whether the loss returns
	alone
)

// batch is the state of one peer.
type batch struct {
	all   *Batches
	peer  netip.Addr
	state batchState
	sent  int        // packets, recently or since the trial or proof began
	again int        // retransmissions among sent
	clean int        // consecutive packets that were not retransmissions
	proof int        // packets since the proof began
	done  int        // proofs in which the loss returned, since one in which it did not
	until clock.Time // end of alone and of trust
}

// to returns the record of a peer.
func (b *Batches) to(peer netip.Addr) *batch {
	if e := b.peers[peer]; e != nil {
		return e
	}
	if len(b.peers) == mostPeers { // connections keep their own records
		maps.DeleteFunc(b.peers, func(_ netip.Addr, e *batch) bool { return e.state == together })
	}
	if b.peers == nil || len(b.peers) == mostPeers {
		b.peers = map[netip.Addr]*batch{}
	}
	e := &batch{all: b, peer: peer}
	b.peers[peer] = e
	return e
}

// send counts a packet and returns how to send it.
func (b *batch) send(now clock.Time) port.Flags {
	b.sent++
	b.clean++
	switch b.state {
	case together:
		b.forget()
		return 0
	case onProof:
		if b.all.goBack { // small messages cause fewer retransmissions, at any time
			b.forget()
		}
		b.proof++
		switch {
		case b.proof < trialPackets:
		case b.again < leastLost: // undecided: perhaps all were single datagrams
			b.continueAs(together)
		default:
			b.become(together, now+trustFor) // the loss has not returned
		}
		return 0
	case onTrial:
		switch {
		case b.clean >= cleanRun:
			b.continueAs(onProof)
		case b.sent >= trialPackets:
			b.become(together, now+trustFor) // the loss has not ended
		}
	case alone:
		if now >= b.until {
			b.become(together, now)
		}
	}
	return port.TxAlone
}

// forget reduces what was counted before the last recentPackets.
func (b *batch) forget() {
	if b.sent >= recentPackets {
		b.sent, b.again = b.sent/2, b.again/2
	}
}

// sendAgain counts the next packet as a retransmission.
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
		b.continueAs(onTrial)
	case onProof:
		if b.done++; b.done == proofs {
			b.blame(now)
		} else {
			b.continueAs(onTrial)
		}
	}
}

// blame ends the last proof: each time the loss ended when datagrams were sent singly, and returned with batches.
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

// continueAs is become where the proofs so far still count.
func (b *batch) continueAs(s batchState) {
	*b = batch{all: b.all, peer: b.peer, state: s, done: b.done}
}
