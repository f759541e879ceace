package vm

import "strings"

// byNumber is a program that exchanges queue pair numbers over TCP.
func byNumber(line string) program {
	name, _, _ := strings.Cut(line, " ")
	index := " -x #"
	if strings.HasPrefix(name, "ibv") {
		index = " -g #"
	} else {
		line += " -F"
	}
	if strings.HasPrefix(name, "ib_read") || strings.HasPrefix(name, "ib_atomic") {
		line += " -o 16" // each side takes the other's number of Reads for its own
	}
	return program{name: line, server: line + index, client: line + index + " @", tcp: 18515}
}

func rxePrograms() []program {
	all := []program{
		{name: "rping", server: "rping -s -a @ -C 20 -v -V", client: "rping -c -a @ -C 20 -v -V", wants: []string{"rdma-ping-19:"}},
		{name: "rping, 65,535 bytes", server: "rping -s -a @ -C 10 -v -V -S 65535", client: "rping -c -a @ -C 10 -v -V -S 65535", wants: []string{"rdma-ping-9:"}},
		{name: "ucmatose, the server sends first", server: "ucmatose -b @ -C 10 -S 4000", client: "ucmatose -s @ -C 10 -S 4000"},
		{name: "rdma_server, rdma_client", server: "rdma_server", client: "rdma_client -s @"},
	}
	for _, line := range []string{"ibv_rc_pingpong", "ibv_rc_pingpong -e -c -s 65536 -n 20", "ibv_srq_pingpong -q 4", "ibv_uc_pingpong", "ibv_ud_pingpong",
		"ib_write_lat -s 2 -n 20", "ib_write_bw -s 65536 -n 20 -q 16", "ib_write_bw -s 65536 -n 20 -m 256", "ib_write_bw -c UC -s 65536 -n 20",
		"ib_read_bw -s 65536 -n 20 -m 512", "ib_send_bw -s 65536 -n 20 -m 1024", "ib_send_bw -c UD -s 1024 -n 20", "ib_send_lat -s 1048576 -n 20", "ib_read_lat -s 2 -n 20",
		"ib_atomic_bw -n 20 -A FETCH_AND_ADD", "ib_atomic_lat -n 20 -A CMP_AND_SWAP"} {
		all = append(all, byNumber(line))
	}
	for _, p := range []string{"ib_write_bw", "ib_read_bw", "ib_send_bw"} {
		all = append(all, perftest(p, "-s 1048576 -n 20"))
	}
	all = append(all, program{name: "udaddy", server: "udaddy -b @", client: "udaddy -s @"})
	vector := func(mode, name string, wants ...string) { all = append(all, vectorOf(mode, name, wants...)) }
	vector("ops", "messages of no bytes, private data both ways", "text 'server-data'", "'client-data'", "read 4000: status=success")
	vector("reject", "reject with private data", "REJECTED", "'not-today'")
	vector("imm", "immediate data", "send 19 imm: status=success", "write 103 imm: status=success")
	vector("inv", "Send with Invalidate of memory that can't be", "send 20 inv: status=remote")
	vector("bad-write", "Write with a wrong key", "write bad key: status=remote access error")
	vector("bad-read", "Read with a wrong key", "read bad key: status=remote access error")
	vector("bounds-write", "Write past the end", "write past the end: status=remote access error")
	vector("bounds-read", "Read past the end", "read past the end: status=remote access error")
	vector("norecv", "Send without a receive", "RNR retry counter exceeded")
	vector("toolong", "Send that is too long", "send 300 into 256: status=remote invalid request error")
	return all
}
