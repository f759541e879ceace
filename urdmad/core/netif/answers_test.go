package netif

import (
	"testing"

	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// TestAnswersHaveABudget: of a flood of echo requests and of requests for our Ethernet address, a bounded
// number is answered. A flood of one kind does not affect the other, and has no effect once it is over.
func TestAnswersHaveABudget(t *testing.T) {
	four, six := newRig(t, linked.Options{}), newRig6(t)
	six.settle()
	question := make([]byte, 64)
	at := wire.PutEthernet(question, wire.Broadcast, four.far.MAC(), wire.EtherTypeARP)
	arp := wire.ARP{Op: wire.ARPRequest, SenderMAC: four.far.MAC(), SenderIP: theirAddr.As4(), TargetIP: ourAddr.As4()}
	question = question[:at+arp.Put(question[at:])]
	echo := make([]byte, wire.EthernetLen+wire.IPv4Len+wire.ICMPEchoLen+8)
	buildEcho(echo, four.far.MAC(), four.n.MAC())
	solicit := make([]byte, 128)
	ndp := wire.NDP{Type: wire.ICMPv6Solicit, Target: our6.As16(), MAC: six.far.MAC(), HasMAC: true}
	solicit = solicit[:ndp.Put(solicit, six.far.MAC(), six.n.MAC(), their6.As16(), our6.As16())]
	for _, c := range []struct {
		name         string
		r            *rig
		flood, other []byte
		why          Drop
	}{
		{"echo", four, echo, question, DropEchoes},
		{"ARP", four, question, echo, DropQuestions},
		{"echo of IPv6", six, six.echo6(their6, our6), solicit, DropEchoes},
		{"neighbour discovery", six, solicit, six.echo6(their6, our6), DropQuestions},
	} {
		t.Run(c.name, func(t *testing.T) {
			const questions, most = 3000, 1000
			ask := func(what []byte) (answers int) {
				c.r.raw(what)
				c.r.far.Flush()
				c.r.clock.Now += clock.Microsecond
				c.r.net.Advance(int64(c.r.clock.Now))
				drain(c.r.n)
				c.r.n.Flush()
				c.r.net.Advance(int64(c.r.clock.Now))
				for {
					n, _ := c.r.far.Poll()
					if n == 0 {
						return answers
					}
					for answers += n; c.r.far.Next() != nil; {
					}
				}
			}
			c.r.clock.Now += clock.Second
			before, n := c.r.n.Stats.Dropped[c.why], 0
			for range questions {
				n += ask(c.flood)
			}
			if dropped := c.r.n.Stats.Dropped[c.why] - before; n != most || dropped != questions-most {
				t.Errorf("%d of %d questions were answered and %d dropped, expected %d answers", n, questions, dropped, most)
			}
			if ask(c.other) != 1 {
				t.Error("another kind of question has no answer")
			}
			if c.r.clock.Now += clock.Second; ask(c.flood) != 1 {
				t.Error("a question after the flood has no answer")
			}
		})
	}
}
