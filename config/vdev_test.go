package config

import "testing"

func TestParseVdev(t *testing.T) {
	for text, want := range map[string]Vdev{
		"":         {},
		"loopback": {Kind: VdevLoopback, Name: "loopback"},
		"memif,role=server,socket=/run/a/../w.sock": {Kind: VdevMemif, Name: "memif", Server: true, Socket: "/run/w.sock"},
		"memif,id=4294967295,socket=/w,role=client": {Kind: VdevMemif, Name: "memif", Socket: "/w", ID: 4294967295},
		"udp":                                 {Kind: VdevUDP, Name: "udp", Port: 30035},
		"udp,port=65535":                      {Kind: VdevUDP, Name: "udp", Port: 65535},
		"tcp":                                 {Kind: VdevUDP, Name: "tcp", Port: 30035, TCP: true},
		"tcp,port=1":                          {Kind: VdevUDP, Name: "tcp", Port: 1, TCP: true},
		"net_af_packet0,iface=veth0,qpairs=2": {Kind: VdevDPDK, Name: "net_af_packet0"},
		"net_ring0":                           {Kind: VdevDPDK, Name: "net_ring0"},
		"virtio_user0,path=/dev/vhost-net,queues=1":  {Kind: VdevDPDK, Name: "virtio_user0"},
		"net_memif0,role=client,socket-abstract=yes": {Kind: VdevDPDK, Name: "net_memif0"},
	} {
		got, err := ParseVdev(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"udp,", "udp,port=", "udp,port=0", "udp,port=65536", "udp,mtu=9000", "tcp,port=0",
		"tcp,", "memif", "memif,", "memif,role=server", "memif,socket=/x", "memif,role=server,socket=",
		"memif,role=server,socket=/x,id=-1", "memif,role=server,socket=/x,id="} {
		if v, err := ParseVdev(text); err == nil {
			t.Errorf("%q: accepted as %+v", text, v)
		}
	}
}
