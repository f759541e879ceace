package roce_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire/roce"
)

// TestLateUCPackets: the network repeats a packet of a Write of type UC during the next Write, which is placed
// correctly.
func TestLateUCPackets(t *testing.T) {
	for _, late := range []int{0, 1, 2} {
		u := enginetest.NewUCPair(t, false, enginetest.Options{RoCE: true})
		for i := range 3000 {
			u.MA.Bytes[i], u.MA.Bytes[8192+i] = 0x11, 0x22
		}
		first := packetsOf(u, 0, 0)
		second := packetsOf(u, 8192, 16384)
		for _, frame := range append(append(append([][]byte{}, first...), second[0], first[late]), second[1:]...) {
			u.A.Port.Inject(frame)
			u.Pass(100 * time.Microsecond)
		}
		if !bytes.Equal(u.MB.Bytes[:3000], u.MA.Bytes[:3000]) {
			t.Errorf("packet %d again: bytes of the second Write are where the first was", late)
		}
		if !bytes.Equal(u.MB.Bytes[16384:][:3000], u.MA.Bytes[8192:][:3000]) {
			t.Errorf("packet %d again: the second Write has not arrived", late)
		}
		if n := u.Stats().Late; n != 1 {
			t.Errorf("packet %d again: %d late", late, n)
		}
	}
}

// packetsOf posts a Write of 3000 bytes and keeps its packets.
func packetsOf(u *enginetest.DatagramPair, from, to int) (frames [][]byte) {
	watch(u.World, func(frame, payload []byte) bool {
		if roce.Opcode(payload[0]).Transport() == roce.UC {
			frames = append(frames, append([]byte(nil), frame...))
		}
		return true
	})
	u.QA.Post(enginetest.Write(1, u.MB, to), u.MA.SGE(from, 3000))
	u.QA.Send.Completions(1)
	u.Pass(time.Millisecond)
	u.SetPath(linked.Path{})
	return frames
}
