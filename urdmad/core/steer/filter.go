package steer

import (
	"golang.org/x/sys/unix"

	"urdma/wire"
	"urdma/wire/ibcm"
)

// SocketFilter chooses among as many sockets of a UDP port as there are workers, as
// SO_ATTACH_REUSEPORT_CBPF takes it (socket(7)): its result is the worker that a datagram is
// for, as payload has it where the worker chose the port number. What it can't tell, such
// as a request to a listener, is any worker's, who hands it over. A load from beyond the
// end of a datagram ends a filter with 0.
func SocketFilter(workers int) []unix.SockFilter {
	const (
		half, byte1, word = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal             = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		shift             = unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K
		constant          = unix.BPF_RET | unix.BPF_K
		number            = 6 // of wire.Encap
		op, pair          = wire.EncapLen + 8, wire.EncapLen + wire.TRPLen
	)
	return append([]unix.SockFilter{
		{Code: half, K: number},
		{Code: equal, K: wire.DatagramPort, Jf: 7},
		{Code: byte1, K: op},
		{Code: shift, K: 4},
		{Code: equal, K: uint32(wire.OpDatagram), Jt: 1},
		{Code: equal, K: uint32(wire.OpUC), Jf: 2},
		{Code: word, K: pair},
		{Code: equal, K: uint32(wire.GeneralQPN), Jf: 1},
		{Code: constant, K: first},
	}, workerOf(workers)...)
}

// workerOf ends a filter with wire.WorkerOf what was loaded.
func workerOf(workers int) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 1<<wire.WorkerBits - 1},
		{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(workers)},
		{Code: unix.BPF_RET | unix.BPF_A},
	}
}

// PacketFilter is that for RoCEv2, whose packets have a queue pair's number. Messages to number
// 1 are any worker's.
func PacketFilter(workers int) []unix.SockFilter {
	return append([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4}, // in the base transport header
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 1<<24 - 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(ibcm.QP), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: first},
	}, workerOf(workers)...)
}
