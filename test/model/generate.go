package model

import "math/rand/v2"

// generator makes a program; it knows the calls so far, but not their results.
type generator struct {
	*rand.Rand
	p       Program
	sends   int
	posted  [2][2]int // sends since the queue pair was connected
	slot    int
	ended   bool       // the last call ends a connection at one side
	windows [2][2]Send // the last bind of each window
}

// Generate makes a program of connected queue pairs from a seed.
func Generate(seed uint64) Program { return generate(seed, func(*generator) {}) }

// GenerateDatagrams makes a program of queue pairs of type UD from a seed.
func GenerateDatagrams(seed uint64) Program {
	return generate(seed, func(g *generator) { g.p.UD, g.p.Windows = true, false })
}

// GenerateXRC makes a program of connections of XRC from a seed. Windows of type 2 would be of no use: they belong to
// a queue pair of type XRC_SEND, which no peer sends to.
func GenerateXRC(seed uint64) Program {
	return generate(seed, func(g *generator) {
		g.p.XRC, g.p.SRQ, g.p.Type1, g.p.Senders = true, true, g.p.Windows, g.IntN(4)
	})
}

func generate(seed uint64, change func(*generator)) Program {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	g.p = Program{Shared: g.one(2), SRQ: g.one(3), SigAll: g.one(5), Windows: g.one(3), RNRRetry: 7,
		Access: localWrite | allRemote}
	if g.one(4) {
		g.p.RNRRetry = g.IntN(2)
	}
	if g.one(6) {
		g.p.Access = localWrite | g.IntN(8)<<1
	}
	g.p.Type1 = g.p.Windows && g.one(2)
	change(g)
	for qp := range 2 {
		g.connect(qp)
		for side := range 2 {
			for range g.IntN(4) {
				g.add(g.receive(side, qp))
			}
		}
	}
	for range 4 + g.IntN(20) {
		c := g.call()
		g.add(c)
		if g.ended && !g.one(4) { // nearly always: it takes a second to notice a peer in the error state
			g.connect(c.QP)
		}
		g.ended = false
	}
	return g.p
}

func (g *generator) connect(qp int) {
	g.posted[0][qp], g.posted[1][qp] = 0, 0
	g.add(Call{What: "connect", QP: qp})
}

func (g *generator) one(of int) bool { return g.IntN(of) == 0 }

func (g *generator) add(c Call) { g.p.Calls = append(g.p.Calls, c) }

func (g *generator) call() Call {
	side, qp := g.IntN(2), g.IntN(2)
	switch n := g.IntN(100); {
	case n < 55 && !g.p.sends(side, qp):
		return g.send(1-side, qp)
	case n < 55:
		return g.send(side, qp)
	case n < 80:
		return g.receive(side, qp)
	case n < 88:
		g.posted[0][qp], g.posted[1][qp] = 0, 0
		return Call{What: "connect", QP: qp}
	case n < 94:
		states := []int{stateReset, stateInit, stateRTR, stateRTS, stateRTS, stateSQD, stateSQD, stateErr, stateErr}
		to := states[g.IntN(len(states))]
		g.ended = to == stateErr || to == stateReset
		if to == stateReset && g.one(2) { // and from RESET to other states
			g.add(Call{What: "state", Side: side, QP: qp, Number: to})
			g.add(Call{What: "state", Side: side, QP: qp, Number: stateInit})
			to = states[g.IntN(len(states))]
		}
		return Call{What: "state", Side: side, QP: qp, Number: to}
	case n < 96:
		return Call{What: "limit", Side: side, QP: qp, Number: g.IntN(4)}
	case n < 97:
		g.connect(0) // the memory is not in use
		g.connect(1)
		return Call{What: "deregister", Side: side, Number: g.IntN(3)}
	case n < 98:
		g.ended = true
		return Call{What: "destroy", Side: side, QP: qp}
	}
	return Call{What: "busy", Side: side, Number: g.IntN(3)}
}

func (g *generator) size() int {
	sizes := []int{0, 1, 8, 64, 100, 256, 1000, 1024, 1025, 3000, 5000}
	return sizes[g.IntN(len(sizes))]
}

// split makes one or two elements of a part of the side's own memory.
func (g *generator) split(key string, offset, length int) []Element {
	if length == 0 {
		return nil
	}
	k := Key{Of: key}
	if g.one(3) && length > 1 {
		n := 1 + g.IntN(length-1)
		return []Element{{k, offset, n}, {k, offset + n, length - n}}
	}
	return []Element{{k, offset, length}}
}

func (g *generator) receive(side, qp int) Call {
	if g.p.XRC && g.p.sends(side, 0) && g.p.sends(side, 1) { // it receives nothing
		side = 1 - side
	}
	g.slot++
	size := slotBytes
	if g.one(3) {
		size = g.size()
	}
	r := Receive{firstReceive + g.slot, g.split("receive", receiveStart+g.slot%slots*slotBytes, size)}
	if g.one(30) && len(r.Elements) > 0 {
		r.Elements[0].Key.Of = []string{"out", "foreign", "gone", "nonsense"}[g.IntN(4)]
	}
	return Call{What: "receive", Side: side, QP: qp, Receive: &r, Next: g.one(3)}
}

func (g *generator) send(side, qp int) Call {
	c := Call{What: "send", Side: side, QP: qp, Next: g.one(3)}
	for range 1 + g.IntN(3) {
		if g.posted[side][qp] == depth {
			break
		}
		g.posted[side][qp]++
		c.Sends = append(c.Sends, g.request(side, qp))
	}
	if len(c.Sends) == 0 {
		return g.receive(side, qp)
	}
	if g.p.UD { // its completion says that all have left
		c.Sends[len(c.Sends)-1].Flags |= signaled
		return c
	}
	shown := false // by a completion behind it, which does not wait for a receive; a receive shows a message itself
	for i := len(c.Sends) - 1; i >= 0; i-- {
		w := &c.Sends[i]
		if !shown && !w.takesReceive() {
			w.Flags |= signaled
		}
		shown = shown || w.Flags&signaled != 0 && !w.takesReceive()
	}
	return c
}

func (g *generator) request(side, qp int) Send {
	g.sends++
	if g.p.UD {
		return g.datagram()
	}
	w := Send{ID: g.sends, Flags: g.IntN(2) * signaled}
	names := []string{"SEND", "SEND", "SEND_IMM", "WRITE", "WRITE", "WRITE_IMM", "READ", "READ", "CAS", "ADD"}
	if g.p.Windows {
		names = append(names, "BIND", "BIND", "BIND")
	}
	if g.p.Windows && !g.p.XRC && (!g.p.Type1 || g.one(8)) { // those of type 1 can't be invalidated
		names = append(names, "INVALIDATE", "SEND_INV")
	}
	w.Opcode = names[g.IntN(len(names))]
	switch {
	case w.Opcode == "BIND":
		g.bind(side, qp, &w)
		return w
	case w.Opcode == "INVALIDATE":
		w.Key = g.windows[side][g.IntN(2)].Key
		g.ended = g.ended || g.p.Type1
		return w
	case w.atomic():
		w.Elements = g.split("in", ownPart(qp)+8*g.IntN(700), 8)
		w.Compare, w.Swap = uint64(g.IntN(3)), g.Uint64()
	case w.Opcode == "READ":
		w.Elements = g.split("in", ownPart(qp)+g.IntN(1000), g.size())
	default:
		g.source(qp, &w)
	}
	if w.Opcode == "SEND_IMM" || w.Opcode == "WRITE_IMM" {
		w.Imm = g.IntN(1 << 30)
	}
	g.target(side, qp, &w)
	g.fault(&w)
	if g.p.XRC {
		if w.To = qp; g.one(4) {
			w.To = 1 - qp
		}
	}
	if g.p.XRC && w.takesReceive() && g.one(12) {
		w.To = nowhere
	}
	return w
}

func (g *generator) datagram() Send {
	w := Send{ID: g.sends, Flags: g.IntN(2) * signaled, Opcode: "SEND", To: g.IntN(2)}
	if g.one(3) {
		w.Opcode, w.Imm = "SEND_IMM", g.IntN(1<<30)
	}
	size := min(g.size(), maxMessage)
	switch g.IntN(24) {
	case 0:
		w.To = nowhere
	case 1:
		w.QKey = 1
	case 2:
		size = 5000 // longer than a packet of any wire here
	}
	w.Elements = g.split("out", g.IntN(outBytes-size+1), size)
	switch {
	case size <= 64 && g.one(3):
		w.Flags |= inline
	case size > 0 && size <= maxMessage && g.one(20):
		g.ended = true
		w.Elements[g.IntN(len(w.Elements))].Key.Of = []string{"foreign", "gone", "nonsense"}[g.IntN(3)]
	}
	return w
}

// ownPart is the target of a queue pair's own Reads and atomics; peersPart is written by its peer.
func ownPart(qp int) int   { return inStart + (2*qp+1)*partBytes }
func peersPart(qp int) int { return inStart + 2*qp*partBytes }

// source gives a send memory that nobody writes, or memory that the queue pair's Reads wrote; then the send is fenced,
// as the Reads may not be finished.
func (g *generator) source(qp int, w *Send) {
	size := g.size()
	if g.one(4) {
		w.Elements = g.split("in", ownPart(qp)+g.IntN(1000), size)
		w.Flags |= fence
	} else {
		w.Elements = g.split("out", g.IntN(outBytes-size+1), size)
	}
	if size <= 64 && g.one(3) {
		w.Flags |= inline
	}
}

// target gives a send memory of the peer.
func (g *generator) target(side, qp int, w *Send) {
	v := &g.windows[1-side][g.IntN(2)]
	switch {
	case w.Opcode == "SEND_INV":
		w.Key = v.Key
		return
	case w.right() == 0:
		return
	case w.Opcode == "READ" && g.one(2):
		w.Key, w.At = Key{Of: "out"}, g.IntN(outBytes-length(w.Elements)+1)
	case v.Key.Variant > 0 && g.one(2):
		w.Key, w.At = v.Key, v.At+g.IntN(max(v.Length-5000, 0)+1)
		if g.one(6) {
			w.Key.Variant-- // the key of the bind before
		}
	default:
		w.Key, w.At = Key{Of: "in"}, peersPart(qp)+g.IntN(1000)
	}
	if w.atomic() {
		w.At = (w.At + 7) &^ 7
	}
}

func (g *generator) bind(side, qp int, w *Send) {
	v := &g.windows[side][g.IntN(2)]
	w.Window, w.Region, w.Access = 0, regionIn, allRemote
	if v == &g.windows[side][1] {
		w.Window = 1
	}
	w.Key = Key{windowNames[w.Window], v.Key.Variant + 1}
	w.At, w.Length = peersPart(qp)+8*g.IntN(10), 5000+g.IntN(1000)
	switch g.IntN(10) {
	case 0:
		w.Region = g.IntN(3)
	case 1:
		w.Access = g.IntN(8) << 1
	case 2:
		w.Length = inBytes
	case 3:
		w.Length = 0
		if g.p.Type1 && g.one(2) {
			w.Region = regionGone
		}
	}
	*v = *w
}

// fault makes one request in eight one that must fail.
func (g *generator) fault(w *Send) {
	wrong := []string{"out", "receive", "foreign", "gone", "nonsense"}
	switch g.IntN(40) {
	case 0:
		if len(w.Elements) > 0 && w.Flags&inline == 0 {
			g.ended = true
			w.Elements[g.IntN(len(w.Elements))].Key.Of = wrong[2+g.IntN(3)]
		}
	case 1:
		if len(w.Elements) > 0 && w.Flags&inline == 0 {
			g.ended = true
			w.Elements[0].Offset = inStart - 1
		}
	case 2, 3:
		if w.right() != 0 {
			i := g.IntN(len(wrong))
			w.Key = Key{Of: wrong[i]}
			if i < 2 { // within its bounds, so that only the right is wrong
				w.At = regions[2*i].start + 8*g.IntN(16)
			}
		}
	case 4:
		if w.right() != 0 {
			w.At = memoryBytes - 8*g.IntN(1500)
		}
	case 5:
		if w.right() != 0 {
			w.At++
		}
	}
}
