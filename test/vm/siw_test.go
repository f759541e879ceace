package vm

import "fmt"

// settings are the settings of siw that affect an MPA start-up.
var settings = []struct{ name, parameters string }{
	{"siw as it is", ""},
	{"CRC", "mpa_crc_required=1"},
	{"revision 1", "mpa_version=1"},
	{"peer to peer", "peer_to_peer=1"},
	{"peer to peer, CRC", "peer_to_peer=1 mpa_crc_required=1"},
}

func perftest(name, args string) program {
	line := name + " -R -F " + args
	return program{name: name + " " + args, server: line, client: line + " @"}
}

// vectorOf returns a mode of guest/wirevec.c.
func vectorOf(mode, name string, wants ...string) program {
	return program{name: name, server: "wirevec -s " + mode, client: "wirevec -c @ " + mode, wants: wants}
}

// rsocketPrograms use rsockets of type SOCK_STREAM: those of rdma-core, and programs for TCP with its librspreload.
func rsocketPrograms() (all []program) {
	for _, line := range []string{"rstream -S 1000 -I 50 -C 20 -T v", "rstream -S 65536 -I 5 -C 20 -T v",
		"rstream -S 1000000 -I 2 -C 5 -T v", "rstream -S 100 -I 50 -C 10 -i 16 -k 10 -T n",
		"riostream -S 65536 -I 5 -C 10 -T v"} {
		all = append(all, program{name: line, server: line + " -b @", client: line + " -s @"})
	}
	return append(all,
		program{name: "rcopy", server: "rcopy", client: "rcopy " + busybox + " @:/tmp/rcopied", stays: true,
			after: busybox + " cmp /tmp/rcopied " + busybox},
		program{name: "a program with sockets, by librspreload", server: preloaded + "socketecho s @ 7600 0",
			client: preloaded + "socketecho c @ 7600 400000", ready: "listening"})
}

func siwPrograms() []program {
	all := []program{
		{name: "rping", server: "rping -s -a @ -C 20 -V", client: "rping -c -a @ -C 20 -V"},
		{name: "rping, 4,096 bytes", server: "rping -s -a @ -C 10 -V -S 4096", client: "rping -c -a @ -C 10 -V -S 4096"},
		{name: "rping, 65,535 bytes", server: "rping -s -a @ -C 10 -V -S 65535", client: "rping -c -a @ -C 10 -V -S 65535"},
		{name: "ucmatose, the server sends first", server: "ucmatose -b @ -C 10 -S 4000",
			client: "ucmatose -s @ -C 10 -S 4000"},
		{name: "rdma_server, rdma_client", server: "rdma_server", client: "rdma_client -s @"},
	}
	for _, p := range []string{"ib_write", "ib_read", "ib_send"} {
		for _, size := range []int{2, 4096, 1 << 20} {
			all = append(all, perftest(p+"_lat", fmt.Sprintf("-s %d -n 20", size)))
		}
		for _, size := range []int{2, 65536, 1 << 20} {
			all = append(all, perftest(p+"_bw", fmt.Sprintf("-s %d -n 20", size)))
		}
		all = append(all, perftest(p+"_bw", "-s 65536 -n 20 -q 16"))
	}
	all = append(all, rsocketPrograms()...)
	all = append(all, program{name: "qperf -cm 1 rc_lat", server: "qperf", client: "qperf @ -cm 1 -t 1 rc_lat quit",
		tcp: 19765})
	vector := func(mode, name string, wants ...string) { all = append(all, vectorOf(mode, name, wants...)) }
	vector("ops", "messages of no bytes, private data both ways", "text 'server-data'",
		"private data 12 bytes 'client-data'", "read 4000: status=success")
	for _, n := range []int{0, 1, 56, 57, 196, 255} {
		vector(fmt.Sprint("private-", n), fmt.Sprintf("%d bytes of private data each way", n), "as sent")
	}
	vector("reject", "reject with private data", "REJECTED", "private data 9 bytes 'not-today'")
	vector("imm", "immediate data is refused at the sender")
	vector("inv", "Send with Invalidate of memory that can't be, a Terminate")
	vector("window", "Send with Invalidate of a memory window", "write 64 by a window: status=success", "flags=0x8",
		"Flushed")
	vector("bad-write", "Write with a wrong key, a Terminate", "Flushed")
	vector("bad-read", "Read with a wrong key, a Terminate", "read bad key: status=")
	vector("bounds-write", "Write past the end, a Terminate")
	vector("bounds-read", "Read past the end, a Terminate", "read past the end: status=")
	vector("norecv", "Send without a receive, a Terminate")
	vector("toolong", "Send that is too long, a Terminate", "local length error")
	return all
}

// short are the programs that run with each of siw's settings.
var short = []string{"rping", "rping, 65,535 bytes", "ucmatose, the server sends first", "ib_write_bw -s 65536 -n 20",
	"ib_read_bw -s 65536 -n 20",
	"ib_send_lat -s 2 -n 20", "messages of no bytes, private data both ways", "reject with private data",
	"Read with a wrong key, a Terminate"}
