package roce_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/roce"
)

// replay is a network that repeats earlier packets, slightly changed and with a right CRC, while regions come and go
// and the responder refuses from time to time.
type replay struct {
	*enginetest.NumberPair
	rand    *rand.Rand
	seen    [][]byte // the newest
	regions []*enginetest.Region
}

// send sends one of them.
func (r *replay) send(guard *enginetest.Region) {
	if len(r.seen) == 0 {
		return
	}
	frame := r.seen[r.rand.IntN(len(r.seen))]
	to := r.A.Port // the port from which the frame leaves
	if frame[wire.EthernetLen+12+3] == r.B.Addr.As4()[3] {
		to = r.B.Port
	}
	to.Inject(r.change(frame, guard))
}

func (r *replay) change(frame []byte, guard *enginetest.Region) []byte {
	var h roce.Header
	payload := frame[wire.UDPHeaderLen:]
	from, until, err := h.Payload(payload, len(payload))
	if err != nil {
		return frame
	}
	data := payload[from:until]
	if r.rand.IntN(2) == 0 {
		h.PSN = h.PSN.Add(uint32(r.rand.IntN(9) - 4))
	}
	switch r.rand.IntN(9) {
	case 0:
		h.Length = uint32(r.rand.IntN(5000))
	case 1:
		h.VA += uint64(r.rand.IntN(3000)) - 1500
	case 2:
		h.RKey = wire.STag(append(r.regions, guard)[r.rand.IntN(len(r.regions)+1)].STag)
	case 3:
		if o := roce.Opcode(r.rand.IntN(int(roce.SendOnlyInvalidate) + 1)); o.Traits() != 0 {
			h.Opcode, h.Dead = o, h.RKey
		}
	case 4:
		data = data[:r.rand.IntN(len(data)+1)]
	case 5:
		h.AETH.Syndrome = roce.Syndrome(r.rand.Uint32())
	}
	h.Pad = uint8(roce.Padding(len(data)))
	b := make([]byte, wire.UDPHeaderLen+roce.MaxHeaderLen+len(data)+3+roce.ICRCLen)
	n := h.Put(b[wire.UDPHeaderLen:])
	n += copy(b[wire.UDPHeaderLen+n:], data) + int(h.Pad) + roce.ICRCLen
	b = b[:wire.UDPHeaderLen+n]
	var u wire.UDPHeader
	ip := frame[wire.EthernetLen:]
	u.Init(wire.MAC(frame[6:12]), wire.MAC(frame[:6]), wire.IPv4(ip[12:16]), wire.IPv4(ip[16:20]), roce.Port, roce.Port)
	u.Put(b, n, 0)
	var sums roce.Sums
	sums.Put(b[wire.EthernetLen:wire.UDPHeaderLen], b[wire.UDPHeaderLen:])
	wire.SetUDPChecksum(b)
	return b
}

// region makes or removes a region that a peer may use.
func (r *replay) region() {
	i := r.rand.IntN(len(r.regions))
	if old := r.regions[i]; r.rand.IntN(2) == 0 {
		r.B.Do(old.Deregister)
	} else if register := (*enginetest.Client).Register; true {
		if r.rand.IntN(2) == 0 {
			register = (*enginetest.Client).RegisterFallback
		}
		r.regions[i] = register(r.QB.Client, 1<<14, enginetest.ReadWrite|mem.RemoteAtomic)
	}
}

// work posts a message of A and a receive of B.
func (r *replay) work(i uint64) {
	to, n := r.regions[r.rand.IntN(len(r.regions))], r.rand.IntN(5000)
	if r.QB.Q.RQ.Posted() < 32 {
		r.QB.PostRecv(i, r.MB.SGE(0, 5000))
	}
	switch from := r.MA.SGE(0, n); r.rand.IntN(5) {
	case 0:
		r.QA.Post(enginetest.Send(i), from)
	case 1:
		r.QA.Post(enginetest.Write(i, to, 0), from)
	case 2:
		r.QA.Post(enginetest.WithImmediate(enginetest.Write(i, to, 0), 7), from)
	case 3:
		r.QA.Post(enginetest.FetchAdd(i, to, 0, 1), r.MA.SGE(0, 8))
	default:
		r.QA.Post(enginetest.Read(i, to, 0), from)
	}
}

// TestReplay: no host crashes, and no memory without rights is written.
func TestReplay(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { replayed(t, seed) })
	}
}

func replayed(t *testing.T, seed uint64) {
	w := enginetest.New(t, enginetest.Options{Seed: 200 + seed, RoCE: true})
	r := &replay{NumberPair: enginetest.ConnectedPairIn(w, false, qp.RNRForever), rand: rand.New(rand.NewPCG(seed, 0))}
	for range 4 {
		r.regions = append(r.regions, r.QB.Client.Register(1<<14, enginetest.ReadWrite|mem.RemoteAtomic))
	}
	guard := r.QB.Client.Register(1<<14, 0)
	watch(w, func(frame, payload []byte) bool {
		if r.seen = append(r.seen, append([]byte(nil), frame...)); len(r.seen) > 40 {
			r.seen = r.seen[1:]
		}
		return r.rand.IntN(20) == 0
	})
	for i := uint64(0); i < 200 && r.QA.Q.State() == abi.QPSRTS && r.QB.Q.State() == abi.QPSRTS; i++ {
		if r.QA.Q.SQ.Outstanding() < 16 {
			r.work(i)
		}
		w.Pass(time.Duration(r.rand.IntN(30)) * time.Microsecond)
		switch r.rand.IntN(6) {
		case 0:
			r.region()
		case 1:
			is := []qp.Outcome{qp.NoReceive, qp.Busy}[r.rand.IntN(2)]
			w.B.Do(func() { r.QB.Q.Client.Interceptor = &judge{verdict: qp.Verdict{Is: is}, left: r.rand.IntN(3)} })
		case 2, 3, 4:
			for range 1 + r.rand.IntN(4) {
				r.send(guard)
			}
		}
		r.QA.Send.Poll()
		r.QB.Recv.Poll()
	}
	w.Pass(100 * time.Millisecond)
	for i, b := range guard.Bytes {
		if b != 0 {
			t.Fatalf("memory without rights was written at %d", i)
		}
	}
}
