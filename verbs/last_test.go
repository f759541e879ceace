package verbs_test

import (
	"testing"
	"time"

	"urdma/verbs"
)

// TestLastSends: messages posted to a reliable connection before its queue pair is closed or its program ends
// arrive, even if no call waited for their completion. In some rounds the worker sleeps, in others it is
// about to wake.
func TestLastSends(t *testing.T) {
	const each = 8
	d := startDaemon(t)
	server, c := d.open(), d.open()
	to := newEnd(t, server, verbs.QPOptions{})
	leave := func(round int, from *end, close func() error) {
		q := must(to.PD().CreateQP(to.cq, to.cq, verbs.QPOptions{}))(t)
		for i := range each {
			ok(t, q.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{to.memory.SGE(i*4096, 4096)}}))
		}
		ok(t, q.ConnectNumber(from.Number()))
		ok(t, from.ConnectNumber(q.Number()))
		time.Sleep(time.Duration(round%8) * 50 * time.Microsecond)
		fill(from.memory.Bytes(), round)
		for range each {
			ok(t, from.PostSend(&verbs.SendWR{Op: verbs.OpSend, SGE: []verbs.SGE{from.memory.SGE(0, 4096)}}))
		}
		ok(t, close())
		for i := range each {
			to.next(t, verbs.StatusSuccess)
			check(t, to.memory.Bytes()[i*4096:(i+1)*4096], round)
		}
		ok(t, q.Close())
	}
	from := newEnd(t, c, verbs.QPOptions{})
	for round := range 50 {
		from.QP = must(from.PD().CreateQP(from.cq, from.cq, verbs.QPOptions{}))(t)
		leave(round, from, from.Close)
	}
	for round := range 50 {
		c := d.open()
		leave(round, newEnd(t, c, verbs.QPOptions{}), c.Close)
	}
}
