package roce_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/roce"
)

// unreliable is queue pairs of type UD or UC whose programs exchange messages, and a change to one of the packets.
type unreliable struct {
	*enginetest.DatagramPair
	*enginetest.Injected
	guard    *enginetest.Region // of B's program; nobody may access it
	reliable *enginetest.NumberPair
	uc       bool
	got      []abi.CQE // of B's receives
	sent     []abi.CQE
}

// Receives of B's program are slots of its memory, after the bytes that UC writes.
const slots, slotSize, received = 1 << 14, 2048, 10

func newUnreliable(t *testing.T, uc bool) *unreliable {
	pair := enginetest.NewUDPair
	if uc {
		pair = enginetest.NewUCPair
	}
	u := &unreliable{DatagramPair: pair(t, false, enginetest.Options{RoCE: true, NoCapture: true}), uc: uc}
	u.Injected = enginetest.NewInjected(u.World)
	u.guard = u.QB.Client.Register(1<<12, 0)
	u.reliable = enginetest.ConnectedPairIn(u.World, false, 2)
	u.reliable.Exchange(100)
	return u
}

// packets calls see for each packet of the queue pairs, numbered from 0; see returns whether it is lost.
func (u *unreliable) packets(see func(i int, frame []byte) (lost bool)) {
	n := -1
	watch(u.World, func(frame, payload []byte) bool {
		if op := roce.Opcode(payload[0]); op.Transport() != roce.UD && op.Transport() != roce.UC {
			return false
		}
		n++
		return see(n, frame)
	})
}

// exchange lets A's program send its messages, the last of which is short.
func (u *unreliable) exchange() {
	for i := range received {
		u.QB.PostRecv(uint64(i), u.MB.SGE(slots+i*slotSize, slotSize))
	}
	post := func(w abi.SQE, off, n int) {
		if !u.uc {
			to := u.ToB(w.WRID)
			w.RemoteAddr, w.CompareAdd, w.Swap = to.RemoteAddr, to.CompareAdd, to.Swap
		}
		u.QA.Post(w, u.MA.SGE(off, n))
	}
	post(enginetest.Send(0), 0, 900)
	post(enginetest.WithImmediate(enginetest.Send(1), 5), 900, 0)
	if u.uc {
		post(enginetest.Send(2), 2000, 2000)
		post(enginetest.Write(3, u.MB, 0), 0, 3000)
		post(enginetest.WithImmediate(enginetest.Write(4, u.MB, 4096), 9), 3000, 10)
	}
	post(enginetest.Send(5), 10, 101)
	u.Pass(5 * time.Millisecond)
}

// messages returns the messages that B's program has received.
func (u *unreliable) messages() [][]byte {
	list := [][]byte{u.MA.Bytes[:900], nil, u.MA.Bytes[10:111]}
	if u.uc {
		return slices.Insert(list, 2, u.MA.Bytes[2000:4000], nil)
	}
	return list
}

// well reports whether B's program has received each message.
func (u *unreliable) well() bool {
	want := u.messages()
	for i, e := range u.got {
		at, n := slots+int(e.WRID)*slotSize, int(e.ByteLen)
		if !u.uc {
			at, n = at+wire.GRHLen, n-wire.GRHLen
		}
		if i < len(want) && want[i] != nil && !bytes.Equal(u.MB.Bytes[at:at+n], want[i]) {
			return false
		}
	}
	return len(u.got) == len(want) && (!u.uc || bytes.Equal(u.MB.Bytes[:3000], u.MA.Bytes[:3000]) &&
		bytes.Equal(u.MB.Bytes[4096:4106], u.MA.Bytes[3000:3010]))
}

// end checks what must hold for any packet, and ends everything.
func (u *unreliable) end() {
	u.T.Helper()
	u.Pass(5 * time.Millisecond)
	u.got, u.sent = u.QB.Recv.Poll(), u.QA.Send.Poll()
	for i, e := range u.got {
		if e.Status != abi.StatusSuccess || e.WRID != uint64(i) {
			u.T.Errorf("receive %d: %+v", i, e)
		}
	}
	for _, e := range u.sent {
		if e.Status != abi.StatusSuccess {
			u.T.Errorf("send: %+v", e)
		}
	}
	if want := len(u.messages()); len(u.sent) != want && (!u.uc || len(u.sent) != want+1) {
		u.T.Errorf("%d sends have completed", len(u.sent))
	}
	if bytes.ContainsFunc(u.guard.Bytes, func(b rune) bool { return b != 0 }) {
		u.T.Error("memory without rights was written")
	}
	u.SetPath(linked.Path{})
	u.reliable.Exchange(3000)
	for _, q := range []*enginetest.QP{u.QA, u.QB, u.reliable.QA, u.reliable.QB} {
		q.Destroy()
	}
	u.Pass(30 * time.Second)
	for _, h := range []*enginetest.Host{u.A, u.B} {
		if n := h.Engine.RoCE.Len(); n > 0 {
			u.T.Errorf("host %s: %d connections are left", h.Name, n)
		}
	}
	u.CheckQuiet()
}

// TestDatagramMutations changes each field of each packet between queue pairs of types UD and UC. The changed packet
// arrives instead of the packet, before it, right after it, or at the end.
func TestDatagramMutations(t *testing.T) {
	tries := 0
	for _, uc := range []bool{false, true} {
		var ops []roce.Opcode
		u := newUnreliable(t, uc)
		u.packets(func(_ int, frame []byte) bool {
			ops = append(ops, roce.Opcode(frame[wire.UDPHeaderLen]))
			return false
		})
		u.exchange()
		if u.end(); !u.well() {
			t.Fatalf("the exchange itself goes wrong: %+v", u.got)
		}
		for i, op := range ops {
			for k, c := range mutations(op, []*enginetest.Region{u.guard, u.MB}) {
				for _, when := range []string{"instead", "before", "behind", "late"} {
					if tries++; os.Getenv("URDMA_LONG") == "" && tries%mutationStride != 0 && (!c.foreign || when != "before") {
						continue
					}
					t.Run(fmt.Sprintf("%d %s/%d %s", i, op, k, when), func(t *testing.T) { unreliably(t, uc, i, k, when) })
				}
			}
		}
	}
	t.Logf("%d changes", tries)
}

// unreliably runs an exchange with packet i changed in way k.
func unreliably(t *testing.T, uc bool, i, k int, when string) {
	u := newUnreliable(t, uc)
	var change mutation
	var packet []byte
	u.packets(func(n int, frame []byte) (lost bool) { // the order is kept: later packets arrive after the changed one
		if n < i {
			return false
		}
		frame = bytes.Clone(frame)
		if n == i {
			packet = frame
			change = mutations(roce.Opcode(packet[wire.UDPHeaderLen]), []*enginetest.Region{u.guard, u.MB})[k]
		}
		if n == i && (when == "instead" || when == "before") {
			u.Inject(changed(t, packet, &change))
		}
		if n > i || when != "instead" {
			u.Inject(frame)
		}
		if n == i && when == "behind" {
			u.Inject(changed(t, packet, &change))
		}
		return true
	})
	u.exchange()
	if when == "late" {
		u.Inject(changed(t, packet, &change))
	}
	u.end()
	if change.foreign && when != "instead" && !u.well() {
		t.Errorf("a packet of somebody else counts: %+v", u.got)
	}
	if t.Failed() {
		t.Error(change.name)
	}
}
