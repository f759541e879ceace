package vm

import "strings"

// byNumber returns a program that exchanges queue pair numbers over TCP.
func byNumber(line string) program {
	name, _, _ := strings.Cut(line, " ")
	index := " -x #"
	if strings.HasPrefix(name, "ibv") {
		index = " -g #"
	} else {
		line += " -F"
	}
	if strings.HasPrefix(name, "ib_read") || strings.HasPrefix(name, "ib_atomic") {
		line += " -o 16" // each side uses the other's number of Reads as its own
	}
	if strings.Contains(line, "-q 16") {
		line += " -u 18" // on an emulated processor one of so many may wait longer than the default of two seconds
	}
	return program{name: line, server: line + index, client: line + index + " @", tcp: 18515}
}

// unbuffered makes a program print without delay.
const unbuffered = "stdbuf -oL "

// throughCM returns a perftest program that connects by rdma_cm.
func throughCM(name, args string) program {
	p := perftest(name, args)
	p.name = name + " -R " + args
	return p
}

// perftests are the programs for reliable connections, with all options.
func perftests() (all []program) {
	for _, p := range []string{"ib_write", "ib_read", "ib_send"} {
		for _, args := range []string{"_lat -s 2 -n 20", "_bw -s 2 -n 100", "_bw -s 65536 -n 20 -q 16",
			"_bw -s 65536 -n 20 -m 256", "_bw -s 65536 -n 20 -m 512", "_bw -s 65536 -n 20 -m 1024"} {
			all = append(all, byNumber(p+args))
		}
		for _, args := range []string{"_lat -s 2 -n 20", "_bw -s 1048576 -n 20"} {
			name, args, _ := strings.Cut(p+args, " ")
			all = append(all, throughCM(name, args))
		}
	}
	return all
}

// rxePrograms are the other programs.
func rxePrograms() []program {
	all := []program{
		{name: "rping", server: "rping -s -a @ -C 20 -v -V", client: "rping -c -a @ -C 20 -v -V",
			wants: []string{"rdma-ping-19:"}},
		{name: "rping, 65,535 bytes", server: "rping -s -a @ -C 10 -v -V -S 65535",
			client: "rping -c -a @ -C 10 -v -V -S 65535", wants: []string{"rdma-ping-9:"}},
		{name: "ucmatose, the server sends first", server: "ucmatose -b @ -C 10 -S 4000",
			client: "ucmatose -s @ -C 10 -S 4000"},
		{name: "rdma_server, rdma_client", server: "rdma_server", client: "rdma_client -s @"},
		{name: "rdma_xserver, rdma_xclient -c r", server: "rdma_xserver -c r", client: "rdma_xclient -c r -s @"},
		{name: "udaddy", server: "udaddy -b @", client: "udaddy -s @"},
		{name: "mckey", server: unbuffered + "mckey -m 239.1.2.3 -b % -C 10", client: unbuffered +
			"mckey -m 239.1.2.3 -b % -C 10 -s", ready: "joined dgid",
			wants: []string{"data transfers complete"}},
	}
	all = append(all, rsocketPrograms()...)
	for _, line := range []string{"ibv_rc_pingpong", "ibv_rc_pingpong -e -c -s 65536 -n 20", "ibv_srq_pingpong -q 4",
		"ibv_uc_pingpong", "ibv_ud_pingpong"} {
		all = append(all, byNumber(line))
	}
	for _, line := range []string{"ib_write_bw -c UC -s 65536 -n 20", "ib_send_lat -c UC -s 2 -n 20",
		"ib_send_bw -c UD -s 1024 -n 20", "ib_send_lat -c UD -s 2 -n 20",
		"ib_atomic_bw -n 20 -A FETCH_AND_ADD", "ib_atomic_lat -n 20 -A CMP_AND_SWAP"} {
		all = append(all, byNumber(line))
	}
	all = append(all, throughCM("ib_atomic_bw", "-n 20 -A CMP_AND_SWAP"))
	vector := func(mode, name string, wants ...string) { all = append(all, vectorOf(mode, name, wants...)) }
	vector("ops", "messages of no bytes, private data both ways", "text 'server-data'", "'client-data'",
		"read 4000: status=success")
	vector("reject", "reject with private data", "REJECTED", "'not-today'")
	vector("imm", "immediate data", "send 19 imm: status=success", "write 103 imm: status=success")
	vector("inv", "Send with Invalidate of memory that can't be", "send 20 inv: status=remote")
	vector("bad-write", "Write with a wrong key", "write bad key: status=remote access error")
	vector("bad-read", "Read with a wrong key", "read bad key: status=remote access error")
	vector("bounds-write", "Write past the end", "write past the end: status=remote access error")
	vector("bounds-read", "Read past the end", "read past the end: status=remote access error")
	vector("norecv", "Send without a receive", "RNR retry counter exceeded")
	vector("toolong", "Send that is too long: any remote error", "send 300 into 256: status=remote")
	vector("toolong", "Send that is too long: an invalid request",
		"send 300 into 256: status=remote invalid request error")
	return all
}

// jumboPrograms are programs with packets longer than 1,500 bytes.
func jumboPrograms() []program {
	all := []program{{name: "rping, 65,535 bytes", server: "rping -s -a @ -C 10 -v -V -S 65535",
		client: "rping -c -a @ -C 10 -v -V -S 65535", wants: []string{"rdma-ping-9:"}},
		perftest("ib_write_bw", "-s 1048576 -n 20")}
	for _, line := range []string{"ib_write_bw -s 65536 -n 20 -m 2048", "ib_write_bw -s 65536 -n 20 -m 4096",
		"ib_read_bw -s 65536 -n 20 -m 4096", "ib_send_bw -s 65536 -n 20 -m 4096",
		"ib_write_bw -c UC -s 65536 -n 20 -m 4096", "ib_send_bw -c UD -s 4096 -n 20"} {
		all = append(all, byNumber(line))
	}
	return all
}
