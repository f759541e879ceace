package suite

import (
	"urdma/bench/results"
	"urdma/test/lab"
)

// measure is one command or a pair of commands, and the figures that it yields.
type measure struct {
	name    string // shown in progress, and selected by --only
	figures []results.Figure
	run     func(*bench) ([]float64, error) // returns one value per figure
	rounds  int                             // number of rounds, the first ones; 0: all
}

// in limits a measure to a number of rounds, if it belongs to no target, or takes long and varies little.
func (m measure) in(rounds int) measure {
	m.rounds = rounds
	return m
}

// two is a measure of two figures.
func two(first, second results.Figure, run func(*bench) ([]float64, error)) measure {
	return measure{name: first.Title, figures: []results.Figure{first, second}, run: run}
}

func one(id, title, unit string, better results.Better, run func(*bench) ([]float64, error)) measure {
	return measure{name: title, figures: []results.Figure{{ID: id, Title: title, Unit: unit, Better: better}}, run: run}
}

// gigabits and halfTrip are the most frequent kinds of measures.
func gigabits(id, title string, run func(*bench) ([]float64, error)) measure {
	return one(id, title, "Gb/s", results.Higher, run)
}

func halfTrip(id, title string, run func(*bench) ([]float64, error)) measure {
	return measure{name: title, figures: []results.Figure{
		{ID: id, Title: title + ", half a round trip, median", Unit: "µs", Better: results.Lower},
		{ID: id + ".99", Title: title + ", half a round trip, 99th percentile", Unit: "µs", Better: results.Lower},
	}, run: run}
}

var (
	memif      = lab.Memif
	memifJumbo = lab.Memif.Jumbo()
	loopback   = lab.Loopback
	udp        = lab.UDP
	udpJumbo   = lab.UDP.Jumbo()
	tcp        = lab.TCP
	tcpJumbo   = lab.TCP.Jumbo()
	tcpLo      = lab.TCP.OverLo()
	afPacket   = lab.AFPacket
	afXDP      = lab.AFXDP
)

// measures lists all measures, each next to what it is compared with.
func measures() []measure {
	var all []measure
	for _, group := range [][]measure{memifMeasures(), kernelMeasures(), loopbackMeasures(), udpMeasures(),
		iwarpMeasures(), roceMeasures(), ethernetMeasures(), scaleMeasures(), mpiMeasures()} {
		all = append(all, group...)
	}
	return all
}

func memifMeasures() []measure {
	return []measure{
		two(results.Figure{ID: "memif.write", Title: "memif 1,500: Writes of 64 KiB", Unit: "Gb/s", Better: results.Higher},
			results.Figure{ID: "memif.write.cpu", Title: "memif 1,500: Writes of 64 KiB, processor time of urdmads and programs",
				Unit: "s/GB", Better: results.Lower},
			bandwidthAndTime(memif, "ib_write_bw", "-s", "65536")),
		two(results.Figure{ID: "tcp.1500", Title: "kernel TCP over veth 1,500 (iperf3)", Unit: "Gb/s",
			Better: results.Higher},
			results.Figure{ID: "tcp.1500.cpu", Title: "kernel TCP over veth 1,500, processor time of both sides", Unit: "s/GB",
				Better: results.Lower}, iperf3(1500)),
		gigabits("testpmd.memif", "testpmd over DPDK's memif, frames of 1,514 bytes", testpmdMemif(1500)).in(3),
		gigabits("bytes.frames.1500", "no protocol, frames of 1,514 bytes (bench/bytes)", bareFrames(1514)).in(3),
		gigabits("memif.read", "memif 1,500: Reads of 64 KiB", bandwidth(memif, false, "ib_read_bw", "-s", "65536")),
		gigabits("memif.send", "memif 1,500: Sends of 64 KiB", bandwidth(memif, false, "ib_send_bw", "-s", "65536")),
		gigabits("memif.write.4k", "memif 1,500: Writes of 4 KiB", bandwidth(memif, false, "ib_write_bw", "-s", "4096")),
		gigabits("memif.write.both", "memif 1,500: Writes of 64 KiB, both directions",
			bandwidth(memif, false, "ib_write_bw", "-s", "65536", "-b")),
		gigabits("memif.write.q16", "memif 1,500: Writes of 64 KiB, 16 queue pairs",
			bandwidth(memif, false, "ib_write_bw", "-s", "65536", "-q", "16")).in(3),
		gigabits("memif.write.q128", "memif 1,500: Writes of 64 KiB, 128 queue pairs",
			bandwidth(memif, false, "ib_write_bw", "-s", "65536", "-q", "128", "-t", "16")).in(3),
		gigabits("memif.write.q1024", "memif 1,500: Writes of 64 KiB, 1,024 queue pairs",
			bandwidth(memif, false, "ib_write_bw", "-s", "65536", "-q", "1024", "-t", "8")).in(3),
		one("memif.write.64", "memif 1,500: Writes of 64 B", "M/s", results.Higher,
			bandwidth(memif, true, "ib_write_bw", "-s", "64")),
		one("memif.write.64.list", "memif 1,500: Writes of 64 B, posted 32 at once", "M/s", results.Higher,
			bandwidth(memif, true, "ib_write_bw", "-s", "64", "-l", "32", "-t", "256")),
		halfTrip("memif.lat", "memif 1,500: Write of 8 B", latency(memif, "ib_write_lat")),
		halfTrip("memif.lat.beside", "memif 1,500: Write of 8 B during Writes of 64 KiB",
			latencyBeside(memif, "ib_write_lat")),
		halfTrip("memif.lat.events", "memif 1,500: Send of 8 B, waiting for events", latency(memif, "ib_send_lat", "-e")),
		one("memif.fair", "memif 1,500: least of 16 flows over their mean", "", results.Higher, fairness(memif, 16)),
		gigabits("memif9000.write", "memif 9,000: Writes of 64 KiB",
			bandwidth(memifJumbo, false, "ib_write_bw", "-s", "65536")),
		two(results.Figure{ID: "tcp.9000", Title: "kernel TCP over veth 9,000 (iperf3)", Unit: "Gb/s",
			Better: results.Higher},
			results.Figure{ID: "tcp.9000.cpu", Title: "kernel TCP over veth 9,000, processor time of both sides", Unit: "s/GB",
				Better: results.Lower}, iperf3(9000)),
		gigabits("bytes.frames.9000", "no protocol, frames of 9,014 bytes (bench/bytes)", bareFrames(9014)).in(3),
		gigabits("memif.write.default", "memif with its default MTU: Writes of 64 KiB",
			bandwidth(memif.ByDefault(), false, "ib_write_bw", "-s", "65536")).in(3),
	}
}

// kernelMeasures are compared with several wires, or belong to no target.
func kernelMeasures() []measure {
	return []measure{
		halfTrip("tcp.lat", "kernel TCP over veth, 14 B, blocking (sockperf)", sockperf("--tcp")),
		halfTrip("tcp.lat.spin", "kernel TCP over veth, 14 B, spinning (sockperf)", sockperf("--tcp", "--nonblocked")),
		two(results.Figure{ID: "tcp.lo", Title: "kernel TCP over lo (iperf3)", Unit: "Gb/s", Better: results.Higher},
			results.Figure{ID: "tcp.lo.cpu", Title: "kernel TCP over lo, processor time of both sides", Unit: "s/GB",
				Better: results.Lower}, iperf3Here),
		halfTrip("tcp.lo.lat", "kernel TCP over lo, 14 B, blocking (sockperf)", sockperfHere).in(3),
	}
}

func loopbackMeasures() []measure {
	return []measure{
		gigabits("loopback.write", "loopback: Writes of 64 KiB", bandwidth(loopback, false, "ib_write_bw", "-s", "65536")),
		gigabits("copy.64k", "one thread copying 64 KiB", copying(64<<10)),
		gigabits("loopback.write.1m", "loopback: Writes of 1 MiB",
			bandwidth(loopback, false, "ib_write_bw", "-s", "1048576")),
		gigabits("copy.1m", "one thread copying 1 MiB", copying(1<<20)),
		gigabits("loopback.write.q1000", "loopback: Writes of 64 KiB, 1,000 queue pairs",
			bandwidth(loopback, false, "ib_write_bw", "-s", "65536", "-q", "1000", "-t", "8")),
		one("loopback.write.64", "loopback: Writes of 64 B", "M/s", results.Higher,
			bandwidth(loopback, true, "ib_write_bw", "-s", "64")),
		halfTrip("loopback.lat", "loopback: Write of 8 B", latency(loopback, "ib_write_lat")),
		halfTrip("loopback.lat.send", "loopback: Send of 8 B", latency(loopback, "ib_send_lat")),
		halfTrip("loopback.lat.events", "loopback: Send of 8 B, waiting for events", latency(loopback, "ib_send_lat", "-e")),
		one("loopback.fair", "loopback: least of 16 flows over their mean", "", results.Higher, fairness(loopback, 16)).in(3),
	}
}

func udpMeasures() []measure {
	return []measure{
		gigabits("udp.write", "udp over veth 1,500: Writes of 64 KiB", bandwidth(udp, false, "ib_write_bw", "-s", "65536")),
		gigabits("udp9000.write", "udp over veth 9,000: Writes of 64 KiB",
			bandwidth(udpJumbo, false, "ib_write_bw", "-s", "65536")),
		gigabits("bytes.udp.1500", "no protocol, datagrams over veth 1,500 (bench/bytes)", bareDatagrams(1500)).in(3),
		gigabits("bytes.udp.9000", "no protocol, datagrams over veth 9,000 (bench/bytes)", bareDatagrams(9000)).in(3),
		one("udp.write.64", "udp over veth: Writes of 64 B", "M/s", results.Higher,
			bandwidth(udp, true, "ib_write_bw", "-s", "64")).in(3),
		halfTrip("udp.lat", "udp over veth: Write of 8 B", latency(udp, "ib_write_lat")),
		halfTrip("udp.lat.events", "udp over veth: Send of 8 B, waiting for events", latency(udp, "ib_send_lat", "-e")),
		gigabits("udp.relayed", "udp through a relay: Writes of 64 KiB",
			bandwidth(udp.Relayed("-loss 0"), false, "ib_write_bw", "-s", "65536")),
		gigabits("udp.relayed.1", "udp through a relay that loses 1 in 100: Writes of 64 KiB",
			bandwidth(udp.Relayed("-loss 0.01"), false, "ib_write_bw", "-s", "65536")),
		gigabits("udp.relayed.5", "udp through a relay that loses 5 in 100: Writes of 64 KiB",
			bandwidth(udp.Relayed("-loss 0.05"), false, "ib_write_bw", "-s", "65536")),
		halfTrip("kernel.udp.lat", "kernel UDP over veth, 14 B, blocking (sockperf)", sockperf()),
		halfTrip("kernel.udp.lat.spin", "kernel UDP over veth, 14 B, spinning (sockperf)", sockperf("--nonblocked")).in(3),
	}
}

// iwarpMeasures measure the wire tcp. In the names of figures, tcp is the kernel's TCP without urdma.
func iwarpMeasures() []measure {
	return []measure{
		writes(tcp, "iwarp", "iWARP over veth 1,500"),
		writes(tcpJumbo, "iwarp9000", "iWARP over veth 9,000"),
		writes(tcpLo, "iwarp.lo", "iWARP over lo"),
		one("iwarp.write.64", "iWARP over veth: Writes of 64 B", "M/s", results.Higher,
			bandwidth(tcp, true, "ib_write_bw", "-s", "64")).in(3),
		halfTrip("iwarp.lat", "iWARP over veth: Write of 8 B", latency(tcp, "ib_write_lat")),
		halfTrip("iwarp.lat.events", "iWARP over veth: Send of 8 B, waiting for events", latency(tcp, "ib_send_lat", "-e")),
		one("iwarp.idle", "iWARP over veth: the busier urdmad with 1,000 idle connections", "% of a core", results.Lower,
			idleStreams(tcp, 1000)).in(1),
	}
}

// writes measures RDMA Writes of 64 KiB, with the processor time of the urdmads.
func writes(w lab.Wire, id, title string) measure {
	return two(results.Figure{ID: id + ".write", Title: title + ": Writes of 64 KiB", Unit: "Gb/s",
		Better: results.Higher},
		results.Figure{ID: id + ".cpu", Title: title + ": Writes of 64 KiB, processor time of both urdmads", Unit: "s/GB",
			Better: results.Lower},
		bandwidthAndDaemons(w, "ib_write_bw", "-s", "65536"))
}

// roceMeasures compare RoCEv2 with our own protocol over the same ports. Its packets carry 1,024 bytes at an MTU of
// 1,500 and 4,096 at 9,000.
func roceMeasures() []measure {
	return []measure{
		writes(lab.RoCE, "roce", "RoCEv2 over udp 1,500").in(3),
		one("roce.write.64", "RoCEv2 over udp: Writes of 64 B", "M/s", results.Higher,
			bandwidth(lab.RoCE, true, "ib_write_bw", "-s", "64")).in(3),
		writes(udp, "roce.trp", "our protocol over udp 1,500").in(3),
		writes(lab.RoCE.Jumbo(), "roce9000", "RoCEv2 over udp 9,000").in(3),
		writes(udpJumbo, "roce9000.trp", "our protocol over udp 9,000").in(3),
		writes(lab.RoCEFrames, "roce.frames", "RoCEv2 over af_packet 1,500").in(3),
		writes(lab.AFPacketKernel, "roce.frames.trp", "our protocol over af_packet 1,500").in(3),
		writes(lab.RoCEFrames.Jumbo(), "roce9000.frames", "RoCEv2 over af_packet 9,000").in(3),
		writes(lab.AFPacketKernel.Jumbo(), "roce9000.frames.trp", "our protocol over af_packet 9,000").in(3),
	}
}

func ethernetMeasures() []measure {
	ethernet := func(w lab.Wire, id, title string) []measure {
		return []measure{
			two(results.Figure{ID: id + ".write", Title: title + " 1,500: Writes of 64 KiB", Unit: "Gb/s",
				Better: results.Higher},
				results.Figure{ID: id + ".packets", Title: title + " 1,500: packets of these Writes", Unit: "M/s",
					Better: results.Higher},
				bandwidthAndPackets(w, "ib_write_bw", "-s", "65536")).in(3),
			one("testpmd."+id, "testpmd over "+title+", frames of 1,514 bytes", "M/s", results.Higher,
				testpmdVeth("net_"+id+"0")).in(3),
			halfTrip(id+".lat", title+": Write of 8 B", latency(w, "ib_write_lat")).in(3),
		}
	}
	return append(ethernet(afPacket, "af_packet", "af_packet on veth"), ethernet(afXDP, "af_xdp", "af_xdp on veth")...)
}

// scaleMeasures need many connections, much memory or much time.
func scaleMeasures() []measure {
	return []measure{
		one("loopback.connect", "loopback: connections through rdma_cm (cmtime, 500)", "1/s", results.Higher,
			setUps(loopback, 500)).in(3),
		one("memif.connect", "memif 1,500: connections through rdma_cm (cmtime, 500)", "1/s", results.Higher,
			setUps(memif, 500)).in(3),
		registrationMeasure(),
		two(results.Figure{ID: "idle.cpu", Title: "memif 1,500: the busier urdmad with 1,000 idle connections",
			Unit: "% of a core", Better: results.Lower},
			results.Figure{ID: "idle.memory", Title: "memory of a queue pair with 128 slots each way, connected and idle",
				Unit: "KiB", Better: results.Lower}, idle(memif, 1000)).in(1),
		gigabits("workers.1", "udp over veth 1,500: Writes of 64 KiB, two pairs of programs, one worker",
			together(udp, 2, "ib_write_bw", "-s", "65536")).in(3),
		gigabits("workers.2", "udp over veth 1,500: Writes of 64 KiB, two pairs of programs, two workers",
			together(udp.WithWorkers(2), 2, "ib_write_bw", "-s", "65536")).in(3),
		gigabits("workers.memif.1", "memif 1,500: Writes of 64 KiB, two pairs of programs, one worker",
			together(memif, 2, "ib_write_bw", "-s", "65536")).in(3),
		gigabits("workers.memif.2", "memif 1,500: Writes of 64 KiB, two pairs of programs, two workers",
			together(memif.WithWorkers(2), 2, "ib_write_bw", "-s", "65536")).in(3),
		one("memif.gap", "memif 1,500: longest time between completions of Writes of 64 KiB, in a minute", "ms",
			results.Lower, longestGap(memif)).in(1),
	}
}

// firstOf is for measures of which only the first value is used.
func firstOf(run func(*bench) ([]float64, error)) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		v, err := run(b)
		if err != nil {
			return nil, err
		}
		return v[:1], nil
	}
}

// secondOf is for measures of which only the second value is used.
func secondOf(run func(*bench) ([]float64, error)) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		v, err := run(b)
		if err != nil {
			return nil, err
		}
		return v[1:2], nil
	}
}
