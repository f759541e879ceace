package datagram_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
)

// TestManagementDatagrams: a MAD reaches the other host's port, asked for by its address or with
// all hosts of the link, over frames of both families and over datagrams; and none that is no
// queue pair 1's does.
func TestManagementDatagrams(t *testing.T) {
	for name, o := range map[string]enginetest.Options{"frames": {}, "IPv6": {IPv6: true}, "datagrams": {Datagrams: true}} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, o)
			type arrival struct {
				dev  int
				from netip.Addr
				mad  []byte
			}
			var got []arrival
			b := w.B.Engine.Datagrams
			b.Management = func(dev int, from netip.Addr, mad []byte) { got = append(got, arrival{dev, from, bytes.Clone(mad)}) }
			mad := bytes.Repeat([]byte{1, 2, 3, 4}, 64)
			to := []netip.Addr{w.B.Addr}
			if all, ok := w.A.Engine.Interface(0).AllHosts(); ok == o.Datagrams {
				t.Errorf("a group of all hosts: %v", ok)
			} else if ok {
				to = append(to, all)
			}
			for _, dst := range to {
				got = nil
				w.A.Engine.Datagrams.SendManagement(0, dst, mad)
				w.Pass(10 * time.Millisecond)
				if len(got) != 1 || got[0].dev != 0 || got[0].from != w.A.Addr || !bytes.Equal(got[0].mad, mad) {
					t.Errorf("to %v: %v", dst, got)
				}
			}
			hosts := w.A.Engine.Interface(0).Hosts(10)
			if len(hosts) != 1 || hosts[0] != w.B.Addr || len(w.A.Engine.Interface(0).Hosts(0)) != 0 {
				t.Errorf("hosts that answered: %v", hosts)
			}
			got = nil
			w.A.Engine.Datagrams.SendManagement(0, w.A.Addr, mad)
			w.A.Engine.Datagrams.SendManagement(0, w.B.Addr, make([]byte, 5000)) // more than a datagram
			w.Pass(10 * time.Millisecond)
			if len(got) != 0 {
				t.Errorf("arrived: %v", got)
			}
		})
	}
	u := enginetest.NewUDPair(t, false, enginetest.Options{})
	u.World.B.Engine.Datagrams.Management = func(int, netip.Addr, []byte) { t.Error("a program's datagram is taken as queue pair 1's") }
	for _, qkey := range []uint32{enginetest.QKey, wire.GeneralQKey} { // the second stands for the queue pair's own
		u.Send(enginetest.To(u.ToB(1), u.World.B.Addr, uint32(wire.GeneralQPN), qkey), 256)
	}
	u.Pass(time.Millisecond)
	if s := u.World.A.Engine.Datagrams.Stats; s.NoQueuePair != 2 || s.Sent != 0 {
		t.Errorf("without a Q_Key of management: %+v", s)
	}
	q := u.QA.Client.NewDatagramQP(wire.GeneralQKey)
	q.Post(enginetest.To(enginetest.Send(1), u.World.B.Addr, uint32(wire.GeneralQPN), wire.GeneralQKey), u.MA.SGE(0, 256))
	q.Send.Completions(1)
	u.Pass(time.Millisecond)
	if s := u.Stats(); s.NoQueuePair != 1 {
		t.Errorf("from another queue pair than 1: %+v", s)
	}
}
