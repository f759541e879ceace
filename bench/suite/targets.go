package suite

import "urdma/bench/results"

// targets are the requirements on the figures, grouped by subject.
func targets() []results.Target {
	var all []results.Target
	for _, group := range [][]results.Target{memifTargets, loopbackTargets, eventTargets, scaleTargets, udpTargets,
		iwarpTargets, roceTargets, ethernetTargets, workerTargets, mpiTargets} {
		all = append(all, group...)
	}
	return all
}

var memifTargets = []results.Target{
	{Title: "memif 1,500: Writes compared with kernel TCP", Ours: "memif.write", Peer: "tcp.1500", Least: 2.5,
		Asked: true},
	{Title: "memif 1,500: Writes compared with frames without protocol", Ours: "memif.write", Peer: "bytes.frames.1500",
		Least: 0.5},
	{Title: "memif 1,500: Reads compared with Writes", Ours: "memif.read", Peer: "memif.write", Least: 0.8},
	{Title: "memif 1,500: Sends compared with Writes", Ours: "memif.send", Peer: "memif.write", Least: 0.8},
	{Title: "memif 1,500: 4 KiB compared with 64 KiB", Ours: "memif.write.4k", Peer: "memif.write", Least: 0.6},
	{Title: "memif 1,500: both directions together compared with one", Ours: "memif.write.both", Peer: "memif.write",
		Least: 1},
	{Title: "memif 1,500: slowest round of Writes compared with the fastest", Ours: "memif.write", Least: 0.6,
		Steady: true},
	{Title: "memif 9,000: Writes compared with kernel TCP at 9,000", Ours: "memif9000.write", Peer: "tcp.9000", Least: 8},
	{Title: "memif 9,000: slowest round of Writes compared with the fastest", Ours: "memif9000.write",
		Least: 1 / 1.5, Steady: true},
	{Title: "memif by default compared with memif 9,000", Ours: "memif.write.default", Peer: "memif9000.write",
		Least: 0.9},
	{Title: "memif 1,500: processor time for each GB compared with kernel TCP", Ours: "memif.write.cpu",
		Peer: "tcp.1500.cpu", Most: 0.6},
	{Title: "memif 1,500: messages of 64 B, M/s", Ours: "memif.write.64", Least: 4},
	{Title: "memif 1,500: the same, posted 32 at once, M/s", Ours: "memif.write.64.list", Least: 8},
	{Title: "memif 1,500: 1,024 queue pairs compared with one", Ours: "memif.write.q1024", Peer: "memif.write",
		Least: 0.8},
	{Title: "memif latency, 99th percentile compared with the median", Ours: "memif.lat.99", Peer: "memif.lat", Most: 3},
	{Title: "memif latency during a bandwidth flow compared with alone", Ours: "memif.lat.beside", Peer: "memif.lat",
		Most: 10},
	{Title: "memif: slowest of 16 equal flows compared with their mean", Ours: "memif.fair", Least: 0.5},
	{Title: "memif: longest time between completions in a minute, ms", Ours: "memif.gap", Most: 10},
}

var loopbackTargets = []results.Target{
	{Title: "loopback: 64 KiB compared with copying", Ours: "loopback.write", Peer: "copy.64k", Least: 0.85, Asked: true},
	{Title: "loopback: 1 MiB compared with copying", Ours: "loopback.write.1m", Peer: "copy.1m", Least: 0.7},
	{Title: "loopback: 1,000 queue pairs compared with one", Ours: "loopback.write.q1000", Peer: "loopback.write",
		Least: 0.8},
	{Title: "loopback: messages of 64 B, M/s", Ours: "loopback.write.64", Least: 10},
	{Title: "loopback: slowest of 16 equal flows compared with their mean", Ours: "loopback.fair", Least: 0.5},
}

var eventTargets = []results.Target{
	{Title: "memif with events compared with blocking TCP", Ours: "memif.lat.events", Peer: "tcp.lat", Most: 0.8},
	{Title: "loopback with events compared with blocking TCP", Ours: "loopback.lat.events", Peer: "tcp.lat", Most: 0.4,
		Asked: true},
}

var scaleTargets = []results.Target{
	{Title: "connections a second through rdma_cm, loopback", Ours: "loopback.connect", Least: 5000},
	{Title: "connections a second through rdma_cm, memif", Ours: "memif.connect", Least: 5000},
	{Title: "idle with 1,000 connections, percent of a core", Ours: "idle.cpu", Most: 1},
	{Title: "memory of an idle connected queue pair, KiB", Ours: "idle.memory", Most: 16},
	{Title: "registering 4 KiB, µs", Ours: "reg.4k", Most: 20},
	{Title: "deregistering 4 KiB, µs", Ours: "dereg.4k", Most: 20},
	{Title: "registering 4 KiB compared with mlock of as much and one copy", Ours: "reg.4k", Peer: "pin.4k", Most: 1.2},
	{Title: "deregistering 4 KiB compared with munlock of it", Ours: "dereg.4k", Peer: "unlock.4k", Most: 2},
	{Title: "registering 1 MiB compared with mlock of as much and one copy", Ours: "reg.1m", Peer: "pin.1m", Most: 1.2},
	{Title: "registering 1 GiB compared with mlock of as much and one copy", Ours: "reg.1g", Peer: "pin.1g", Most: 1.2},
	{Title: "registering 1 GiB never touched compared with mlock of as much", Ours: "reg.1g.fresh", Peer: "lock.1g",
		Most: 1.2},
	{Title: "deregistering 1 MiB compared with munlock of it", Ours: "dereg.1m", Peer: "unlock.1m", Most: 2},
	{Title: "deregistering 1 GiB compared with munlock of it", Ours: "dereg.1g", Peer: "unlock.1g", Most: 2},
	{Title: "registering 1 GiB of urdma_alloc compared with mlock of as much", Ours: "reg.1g.born", Peer: "lock.1g",
		Most: 0.2},
	{Title: "registering 1 GiB compared with one copy of it", Ours: "reg.1g", Peer: "copy.1g", Most: 1},
	{Title: "registering 1 GiB never touched compared with making it exist", Ours: "reg.1g.fresh", Peer: "enter.1g",
		Most: 1.2},
	{Title: "deregistering 1 GiB compared with one copy of it", Ours: "dereg.1g", Peer: "copy.1g", Most: 1},
	{Title: "registering the same again: 1 GiB compared with 4 KiB", Ours: "reg.1g.again", Peer: "reg.4k.again", Most: 10},
}

var udpTargets = []results.Target{
	{Title: "udp 1,500: Writes compared with kernel TCP", Ours: "udp.write", Peer: "tcp.1500", Least: 1.2, Asked: true},
	{Title: "udp 9,000: Writes compared with kernel TCP at 9,000", Ours: "udp9000.write", Peer: "tcp.9000", Least: 1.5},
	{Title: "udp latency compared with blocking kernel UDP", Ours: "udp.lat", Peer: "kernel.udp.lat", Most: 1 / 1.5,
		Asked: true},
	{Title: "udp with events compared with blocking kernel UDP", Ours: "udp.lat.events", Peer: "kernel.udp.lat",
		Most: 0.8},
	{Title: "udp: Writes with 1 % loss compared with those without", Ours: "udp.relayed.1", Peer: "udp.relayed",
		Least: 0.9},
	{Title: "udp: Writes with 5 % loss compared with those without", Ours: "udp.relayed.5", Peer: "udp.relayed",
		Least: 0.6},
}

var iwarpTargets = []results.Target{
	{Title: "iWARP over 1,500: Writes compared with kernel TCP", Ours: "iwarp.write", Peer: "tcp.1500", Least: 1.2},
	{Title: "iWARP over 9,000: Writes compared with kernel TCP", Ours: "iwarp9000.write", Peer: "tcp.9000", Least: 1.5},
	{Title: "iWARP over lo: Writes compared with kernel TCP", Ours: "iwarp.lo.write", Peer: "tcp.lo", Least: 2},
	{Title: "iWARP over 1,500: processor time for each GB compared with kernel TCP", Ours: "iwarp.cpu",
		Peer: "tcp.1500.cpu",
		Most: 1},
	{Title: "iWARP over 9,000: processor time for each GB compared with kernel TCP", Ours: "iwarp9000.cpu",
		Peer: "tcp.9000.cpu",
		Most: 1},
	{Title: "iWARP over lo: processor time for each GB compared with kernel TCP", Ours: "iwarp.lo.cpu", Peer: "tcp.lo.cpu",
		Most: 1},
	{Title: "iWARP latency compared with spinning kernel TCP", Ours: "iwarp.lat", Peer: "tcp.lat.spin", Most: 1.8},
	{Title: "iWARP with events compared with blocking kernel TCP", Ours: "iwarp.lat.events", Peer: "tcp.lat", Most: 0.8},
	{Title: "iWARP idle with 1,000 connections, percent of a core", Ours: "iwarp.idle", Most: 1},
}

var roceTargets = []results.Target{
	{Title: "RoCEv2 over udp 1,500: Writes compared with kernel TCP", Ours: "roce.write", Peer: "tcp.1500", Least: 1},
	{Title: "RoCEv2 over udp 9,000: Writes compared with kernel TCP", Ours: "roce9000.write", Peer: "tcp.9000",
		Least: 1.2},
}

// workerTargets need a core for each of six threads.
var workerTargets = []results.Target{
	{Title: "udp 1,500: two workers compared with one", Ours: "workers.2", Peer: "workers.1", Least: 1.8},
	{Title: "memif 1,500: two workers compared with one", Ours: "workers.memif.2", Peer: "workers.memif.1", Least: 1.8},
}

var ethernetTargets = []results.Target{
	{Title: "af_packet: packets compared with testpmd's", Ours: "af_packet.packets", Peer: "testpmd.af_packet",
		Least: 0.9},
	{Title: "af_xdp: packets compared with testpmd's", Ours: "af_xdp.packets", Peer: "testpmd.af_xdp", Least: 0.9},
}

var mpiTargets = []results.Target{
	{Title: "Open MPI over loopback: latency compared with its tcp", Ours: "mpi.loopback.lat", Peer: "mpi.tcp.lat",
		Most:  0.8,
		Asked: true},
	{Title: "Open MPI over memif: latency compared with its tcp", Ours: "mpi.memif.lat", Peer: "mpi.tcp.lat", Most: 0.8},
	{Title: "Open MPI over loopback: 1 MiB compared with its tcp", Ours: "mpi.loopback.1m", Peer: "mpi.tcp.1m", Least: 2,
		Asked: true},
	{Title: "Open MPI over memif: 1 MiB compared with its tcp", Ours: "mpi.memif.1m", Peer: "mpi.tcp.1m", Least: 2},
}
