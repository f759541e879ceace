package steer

import (
	"golang.org/x/sys/unix"

	"urdma/wire"
	"urdma/wire/ibcm"
)

// SocketFilter returns a filter that chooses among the sockets of a UDP port, one for each worker, for
// SO_ATTACH_REUSEPORT_CBPF (socket(7)). Its result is the worker for a datagram, as Port.payload computes
// it if the worker chose the port number. Other packets, such as requests to a listener, go to any worker,
// which passes them on. A load beyond the end of a datagram ends the filter with 0.
func SocketFilter(workers int) []unix.SockFilter {
	const (
		half, byte1, word = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, unix.BPF_LD | unix.BPF_B | unix.BPF_ABS,
			unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		shift    = unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K
		constant = unix.BPF_RET | unix.BPF_K
		number   = 6 // of wire.Encap
		op, pair = wire.EncapLen + 8, wire.EncapLen + wire.TRPLen
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

// workerOf ends a filter with wire.WorkerOf of the loaded value.
func workerOf(workers int) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 1<<wire.WorkerBits - 1},
		{Code: unix.BPF_ALU | unix.BPF_MOD | unix.BPF_K, K: uint32(workers)},
		{Code: unix.BPF_RET | unix.BPF_A},
	}
}

// PacketFilter is the same for RoCEv2, whose packets have a queue pair number. Messages to number 1 go to
// any worker.
func PacketFilter(workers int) []unix.SockFilter {
	return append([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4}, // in the base transport header
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 1<<24 - 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(ibcm.QP), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: first},
	}, workerOf(workers)...)
}
