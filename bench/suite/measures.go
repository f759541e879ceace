package suite

import (
	"urdma/bench/results"
	"urdma/test/lab"
)

// measure is one command, or a pair of them, and the figures it yields.
type measure struct {
	name    string // as progress shows it, and as --only selects it
	figures []results.Figure
	run     func(*bench) ([]float64, error) // as many values as figures
}

func one(id, title, unit string, better results.Better, run func(*bench) ([]float64, error)) measure {
	return measure{title, []results.Figure{{ID: id, Title: title, Unit: unit, Better: better}}, run}
}

// gigabits and halfTrip are the measures that most are.
func gigabits(id, title string, run func(*bench) ([]float64, error)) measure {
	return one(id, title, "Gb/s", results.Higher, run)
}

func halfTrip(id, title string, run func(*bench) ([]float64, error)) measure {
	return measure{title, []results.Figure{
		{ID: id, Title: title + ", half a round trip, median", Unit: "µs", Better: results.Lower},
		{ID: id + ".99", Title: title + ", half a round trip, 99th percentile", Unit: "µs", Better: results.Lower},
	}, run}
}

var (
	memif      = lab.Memif
	memifJumbo = lab.Memif.Jumbo()
	loopback   = lab.Loopback
	udp        = lab.UDP
	udpJumbo   = lab.UDP.Jumbo()
	afPacket   = lab.AFPacket
	afXDP      = lab.AFXDP
)

// measures are all there are, each beside what it is compared with.
func measures() []measure {
	var all []measure
	for _, group := range [][]measure{memifMeasures(), loopbackMeasures(), udpMeasures(), ethernetMeasures()} {
		all = append(all, group...)
	}
	return all
}

func memifMeasures() []measure {
	return []measure{
		gigabits("memif.write", "memif 1,500: Writes of 64 KiB", bandwidth(memif, false, "ib_write_bw", "-s", "65536")),
		gigabits("unix.64k", "unix sockets between two threads, writes of 64 KiB", unixStream(64<<10)),
		gigabits("tcp.lo", "kernel TCP over lo (iperf3)", iperf3Here),
		gigabits("tcp.1500", "kernel TCP over veth 1,500 (iperf3)", firstOf(iperf3(1500))),
		gigabits("testpmd.memif", "testpmd over DPDK's memif, frames of 1,514 bytes", testpmdMemif(1500)),
		gigabits("memif.read", "memif 1,500: Reads of 64 KiB", bandwidth(memif, false, "ib_read_bw", "-s", "65536")),
		gigabits("memif.send", "memif 1,500: Sends of 64 KiB", bandwidth(memif, false, "ib_send_bw", "-s", "65536")),
		gigabits("memif.write.4k", "memif 1,500: Writes of 4 KiB", bandwidth(memif, false, "ib_write_bw", "-s", "4096")),
		gigabits("memif.write.both", "memif 1,500: Writes of 64 KiB, both directions", bandwidth(memif, false, "ib_write_bw", "-s", "65536", "-b")),
		gigabits("memif.write.q16", "memif 1,500: Writes of 64 KiB, 16 queue pairs", bandwidth(memif, false, "ib_write_bw", "-s", "65536", "-q", "16")),
		one("memif.write.64", "memif 1,500: Writes of 64 B", "M/s", results.Higher, bandwidth(memif, true, "ib_write_bw", "-s", "64")),
		one("memif.write.64.list", "memif 1,500: Writes of 64 B, posted 32 at once", "M/s", results.Higher,
			bandwidth(memif, true, "ib_write_bw", "-s", "64", "-l", "32", "-t", "256")),
		halfTrip("memif.lat", "memif 1,500: Write of 8 B", latency(memif, "ib_write_lat")),
		halfTrip("floor.2", "no protocol, two daemons (bench/floor)", floor("daemons=2 traffic=write ack=50us reply=100us")),
		halfTrip("memif.lat.events", "memif 1,500: Send of 8 B, waiting for events", latency(memif, "ib_send_lat", "-e")),
		halfTrip("unix.lat", "unix sockets between two threads, 14 B, blocking", unixTrip),
		halfTrip("tcp.lo.lat", "kernel TCP over lo, 14 B, blocking (sockperf)", sockperfHere),
		halfTrip("tcp.lat", "kernel TCP over veth, 14 B, blocking (sockperf)", sockperf("--tcp")),
		halfTrip("tcp.lat.spin", "kernel TCP over veth, 14 B, spinning (sockperf)", sockperf("--tcp", "--nonblocked")),
		gigabits("memif9000.write", "memif 9,000: Writes of 64 KiB", bandwidth(memifJumbo, false, "ib_write_bw", "-s", "65536")),
		gigabits("tcp.9000", "kernel TCP over veth 9,000 (iperf3)", firstOf(iperf3(9000))),
	}
}

func loopbackMeasures() []measure {
	return []measure{
		gigabits("loopback.write", "loopback: Writes of 64 KiB", bandwidth(loopback, false, "ib_write_bw", "-s", "65536")),
		gigabits("copy.64k", "one thread copying 64 KiB", copying(64<<10)),
		gigabits("loopback.write.1m", "loopback: Writes of 1 MiB", bandwidth(loopback, false, "ib_write_bw", "-s", "1048576")),
		gigabits("copy.1m", "one thread copying 1 MiB", copying(1<<20)),
		gigabits("loopback.write.q1000", "loopback: Writes of 64 KiB, 1,000 queue pairs",
			bandwidth(loopback, false, "ib_write_bw", "-s", "65536", "-q", "1000", "-t", "8")),
		one("loopback.write.64", "loopback: Writes of 64 B", "M/s", results.Higher, bandwidth(loopback, true, "ib_write_bw", "-s", "64")),
		halfTrip("loopback.lat", "loopback: Write of 8 B", latency(loopback, "ib_write_lat")),
		halfTrip("loopback.lat.send", "loopback: Send of 8 B", latency(loopback, "ib_send_lat")),
		halfTrip("floor.1", "no protocol, one daemon (bench/floor)", floor("daemons=1 traffic=write ack=0")),
		halfTrip("loopback.lat.events", "loopback: Send of 8 B, waiting for events", latency(loopback, "ib_send_lat", "-e")),
	}
}

func udpMeasures() []measure {
	return []measure{
		gigabits("udp.write", "udp over veth 1,500: Writes of 64 KiB", bandwidth(udp, false, "ib_write_bw", "-s", "65536")),
		gigabits("udp9000.write", "udp over veth 9,000: Writes of 64 KiB", bandwidth(udpJumbo, false, "ib_write_bw", "-s", "65536")),
		halfTrip("udp.lat", "udp over veth: Write of 8 B", latency(udp, "ib_write_lat")),
		halfTrip("udp.lat.events", "udp over veth: Send of 8 B, waiting for events", latency(udp, "ib_send_lat", "-e")),
		halfTrip("kernel.udp.lat", "kernel UDP over veth, 14 B, blocking (sockperf)", sockperf()),
	}
}

func ethernetMeasures() []measure {
	return []measure{
		gigabits("af_packet.write", "af_packet on veth 1,500: Writes of 64 KiB", bandwidth(afPacket, false, "ib_write_bw", "-s", "65536")),
		gigabits("af_xdp.write", "af_xdp on veth 1,500: Writes of 64 KiB", bandwidth(afXDP, false, "ib_write_bw", "-s", "65536")),
		halfTrip("af_packet.lat", "af_packet on veth: Write of 8 B", latency(afPacket, "ib_write_lat")),
		halfTrip("af_xdp.lat", "af_xdp on veth: Write of 8 B", latency(afXDP, "ib_write_lat")),
	}
}

// firstOf is for measures of which only the first value is a figure.
func firstOf(run func(*bench) ([]float64, error)) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		v, err := run(b)
		if err != nil {
			return nil, err
		}
		return v[:1], nil
	}
}

// targets are what the figures should be beside each other.
func targets() []results.Target {
	return []results.Target{
		{Title: "memif 1,500: Writes beside kernel TCP", Ours: "memif.write", Peer: "tcp.1500", Least: 4},
		{Title: "memif 1,500: Writes beside testpmd", Ours: "memif.write", Peer: "testpmd.memif", Least: 0.6},
		{Title: "memif 1,500: Reads beside Writes", Ours: "memif.read", Peer: "memif.write", Least: 0.8},
		{Title: "memif 1,500: Sends beside Writes", Ours: "memif.send", Peer: "memif.write", Least: 0.8},
		{Title: "memif 1,500: 4 KiB beside 64 KiB", Ours: "memif.write.4k", Peer: "memif.write", Least: 0.6},
		{Title: "memif 1,500: both directions together beside one", Ours: "memif.write.both", Peer: "memif.write", Least: 1},
		{Title: "memif 9,000: Writes beside kernel TCP at 9,000", Ours: "memif9000.write", Peer: "tcp.9000", Least: 8},
		{Title: "memif 1,500: messages of 64 B, M/s", Ours: "memif.write.64", Least: 5},
		{Title: "memif 1,500: the same, posted 32 at once, M/s", Ours: "memif.write.64.list", Least: 8},
		{Title: "memif latency beside the floor", Ours: "memif.lat", Peer: "floor.2", Most: 1.2},
		{Title: "memif latency, 99th percentile beside the median", Ours: "memif.lat.99", Peer: "memif.lat", Most: 3},
		{Title: "memif with events beside blocking TCP", Ours: "memif.lat.events", Peer: "tcp.lat", Most: 0.5},
		{Title: "loopback: 64 KiB beside copying", Ours: "loopback.write", Peer: "copy.64k", Least: 0.7},
		{Title: "loopback: 1 MiB beside copying", Ours: "loopback.write.1m", Peer: "copy.1m", Least: 0.7},
		{Title: "loopback: 1,000 queue pairs beside one", Ours: "loopback.write.q1000", Peer: "loopback.write", Least: 0.8},
		{Title: "loopback: messages of 64 B, M/s", Ours: "loopback.write.64", Least: 10},
		{Title: "loopback: Write latency beside the floor", Ours: "loopback.lat", Peer: "floor.1", Most: 1.1},
		{Title: "loopback: Send latency beside the floor", Ours: "loopback.lat.send", Peer: "floor.1", Most: 1.1},
		{Title: "loopback with events beside blocking TCP", Ours: "loopback.lat.events", Peer: "tcp.lat", Most: 0.4},
		{Title: "udp 1,500: Writes beside kernel TCP", Ours: "udp.write", Peer: "tcp.1500", Least: 1.5},
		{Title: "udp 9,000: Writes beside kernel TCP at 9,000", Ours: "udp9000.write", Peer: "tcp.9000", Least: 1.2},
		{Title: "udp latency beside blocking kernel UDP", Ours: "udp.lat", Peer: "kernel.udp.lat", Most: 1 / 1.5},
		{Title: "udp with events beside blocking kernel UDP", Ours: "udp.lat.events", Peer: "kernel.udp.lat", Most: 1},
	}
}
