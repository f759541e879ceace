package mpa_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// waiting is a queue pair of host A with messages of a peer that find no receive, and wait for one without limit.
func waiting(w *enginetest.World, messages int) (*peer, *enginetest.QP) {
	w.T.Helper()
	param := enginetest.Param(4, "")
	param.RNRRetryCount = 7
	p, q, _ := connected(w, request(), param)
	for i := range messages {
		b := make([]byte, wire.UntaggedLen+8)
		d := wire.DDP{Last: true, Op: wire.OpSend, QN: wire.QueueSend, MSN: wire.MSN(i + 1)}
		d.Put(b)
		p.send(p.fpdu(b))
	}
	w.Pass(10 * time.Millisecond)
	return p, q
}

// TestEndBehindMessage: the peer's end of the stream is noticed, and keeps no worker busy, though a message in front
// of it waits for a receive.
func TestEndBehindMessage(t *testing.T) {
	for name, leave := range map[string]func(p *peer){
		"end":   func(p *peer) { _ = p.conn.CloseWrite() },
		"close": func(p *peer) { _ = p.conn.Close() },
		"reset": (*peer).reset,
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, enginetest.Options{})
			p, q := waiting(w, 1)
			leave(p)
			w.Pass(time.Millisecond)
			idle(w)
			q.Client.Event(cm.EventDisconnected, time.Minute)
			w.Pass(10 * time.Second)
			idle(w)
		})
	}
}

// TestReceivesBehindEnd: data that a peer sent before its end still get receives that the program posts a
// little late, and then the program gets the end.
func TestReceivesBehindEnd(t *testing.T) {
	w := world(t, enginetest.Options{})
	p, q := waiting(w, 5)
	dst := q.Client.Register(64, rw)
	_ = p.conn.CloseWrite()
	for i := range 5 {
		w.Pass(300 * time.Millisecond) // longer in all than one message may wait
		q.PostRecv(uint64(i), dst.SGE(0, 64))
		for _, e := range q.Recv.Completions(1) {
			if e.Status != abi.StatusSuccess {
				t.Errorf("%+v", e)
			}
		}
	}
	q.Client.Event(cm.EventDisconnected, time.Minute)
}

// TestEndWithoutRoom: a program whose peer has disconnected gets the event, even if the peer's kernel could
// not send all posted data and the end of the stream.
func TestEndWithoutRoom(t *testing.T) {
	w := world(t, enginetest.Options{RNRRetry: 7})
	a, b := w.A.NewClient().NewQP(nil), w.B.NewClient().NewQP(nil)
	id, _ := enginetest.Join(a, b, 4)
	src := a.Client.Register(1<<20, rw)
	for i := range 16 {
		a.Post(enginetest.Send(uint64(i)), src.SGE(0, 1<<20))
	}
	w.Pass(100 * time.Millisecond)
	a.Client.Disconnect(id)
	a.Client.Event(cm.EventDisconnected, time.Minute)
	b.Client.Event(cm.EventDisconnected, time.Minute)
}
