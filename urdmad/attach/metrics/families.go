package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"urdma/inspect"
)

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// add adds one value of a family, with the values of the family's labels in order.
type add func(value float64, labels ...string)

// family is a metric with all its labels.
type family struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	values     func(v *view, add add)
}

// view is a snapshot with sums that several families use.
type view struct {
	*inspect.Snapshot
	traffic   []inspect.Traffic // by port
	work      inspect.Work
	busyRatio float64
}

func newView(s *inspect.Snapshot, busyRatio float64) *view {
	if s.Loop == nil {
		s.Loop = &inspect.Loop{}
	}
	if s.Totals == nil {
		s.Totals = &inspect.Totals{}
	}
	if s.Handshakes == nil {
		s.Handshakes = &inspect.Handshakes{}
	}
	return &view{Snapshot: s, traffic: s.AllTraffic(), work: s.AllWork(), busyRatio: busyRatio}
}

// families returns every metric, in groups.
func families() (all []family) {
	for _, group := range [][]family{daemonFamilies, portFamilies, countsOfPorts, trafficFamilies, countsOfTraffic,
		objectFamilies,
		countsOfWork, countsOfTotals, troubleFamilies, countsOfHandshakes, loopFamilies, countsOfLoop} {
		all = append(all, group...)
	}
	return all
}

var daemonFamilies = []family{
	{"urdma_build_info", "Version of urdmad; always 1.", gauge, []string{"version"},
		func(v *view, add add) { add(1, v.Daemon.Version) }},
	{"urdma_start_time_seconds", "When urdmad started, in seconds since the epoch.", gauge, nil,
		func(v *view, add add) { add(float64(v.Daemon.Started.UnixNano()) / 1e9) }},
	{"urdma_clients", "Processes that use urdmad.", gauge, nil, func(v *view, add add) { add(float64(len(v.Clients))) }},
}

// port returns a family with one value per port.
func port(name, help string, kind prometheus.ValueType, value func(*inspect.Port) float64) family {
	return family{name, help, kind, []string{"port"}, func(v *view, add add) {
		for i := range v.Ports {
			add(value(&v.Ports[i]), v.Ports[i].Name)
		}
	}}
}

var portFamilies = []family{
	{"urdma_port_info", "What a port is; always 1.", gauge, []string{"port", "driver", "address", "mac", "transport"},
		func(v *view, add add) {
			for _, p := range v.Ports {
				add(1, p.Name, p.Driver, p.Address, p.MAC, p.Transport)
			}
		}},
	port("urdma_port_up", "Whether the port's link is up.", gauge, func(p *inspect.Port) float64 {
		if p.LinkUp {
			return 1
		}
		return 0
	}),
	port("urdma_port_mtu_bytes", "Largest IPv4 packet of the port.", gauge,
		func(p *inspect.Port) float64 { return float64(p.MTU) }),
}

var trafficFamilies = []family{
	{"urdma_segments_in_flight", "Segments sent and not acknowledged.", gauge, []string{"port"}, func(v *view, add add) {
		n := map[string]int{}
		for i := range v.QPs {
			if w := v.QPs[i].Wire; w != nil {
				n[v.QPs[i].Device] += w.InFlight
			}
		}
		for i := range v.Ports {
			add(float64(n[v.Ports[i].Name]), v.Ports[i].Name)
		}
	}},
	{"urdma_slowest_round_trip_seconds", "Longest smoothed round-trip time of the port's connections; 0 where none is measured.", gauge, []string{"port"},
		func(v *view, add add) {
			longest := map[string]int64{}
			for i := range v.QPs {
				if q := &v.QPs[i]; q.Wire != nil {
					longest[q.Device] = max(longest[q.Device], q.Wire.RTTNs)
				}
			}
			for i := range v.Ports {
				add(float64(longest[v.Ports[i].Name])/1e9, v.Ports[i].Name)
			}
		}},
}

// tally counts objects by a name. Names in all without objects get the value 0.
func tally(n int, of func(int) string, all []string, add add) {
	by := map[string]float64{}
	for i := range n {
		by[of(i)]++
	}
	for _, name := range all {
		add(by[name], name)
	}
}

var objectFamilies = []family{
	{"urdma_queue_pairs", "Queue pairs.", gauge, []string{"state"}, func(v *view, add add) {
		tally(len(v.QPs), func(i int) string { return v.QPs[i].State }, inspect.QPStates[:], add)
	}},
	{"urdma_connections", "rdma_cm ids that don't listen.", gauge, []string{"state"}, func(v *view, add add) {
		tally(len(v.Connections), func(i int) string { return v.Connections[i].State }, inspect.IDStates[:], add)
	}},
	{"urdma_listeners", "rdma_cm ids that listen.", gauge, nil, func(v *view, add add) { add(float64(len(v.Listeners))) }},
	{"urdma_completion_queues", "Completion queues.", gauge, nil, func(v *view, add add) { add(float64(len(v.CQs))) }},
	{"urdma_protection_domains", "Protection domains.", gauge, nil,
		func(v *view, add add) { add(float64(len(v.Domains))) }},
	{"urdma_memory_regions", "Memory regions by how urdmad reaches them.", gauge, []string{"path"},
		func(v *view, add add) {
			tally(len(v.Regions), func(i int) string { return v.Regions[i].Path },
				[]string{inspect.PathShared, inspect.PathFallback}, add)
		}},
	{"urdma_registered_bytes", "Bytes of memory regions by how urdmad reaches them.", gauge, []string{"path"},
		func(v *view, add add) {
			var shared, fallback uint64
			for i := range v.Clients {
				shared += v.Clients[i].SharedBytes
				fallback += v.Clients[i].FallbackBytes
			}
			add(float64(shared), inspect.PathShared)
			add(float64(fallback), inspect.PathFallback)
		}},
}

func terminates(direction string, list []inspect.Terminate, add add) {
	for i := range list {
		add(float64(list[i].Count), direction, list[i].Text)
	}
}

var troubleFamilies = []family{
	{"urdma_terminates_total", "Terminate messages by cause (RFC 5040 section 4.8).", counter,
		[]string{"direction", "cause"}, func(v *view, add add) {
			terminates("out", v.Totals.TerminatesSent, add)
			terminates("in", v.Totals.TerminatesGot, add)
		}},
	{"urdma_bad_frames_total", "Frames that break a protocol, by what is wrong.", counter, []string{"reason"},
		func(v *view, add add) {
			for reason, n := range v.Totals.BadFrames {
				add(float64(n), reason)
			}
		}},
}

var loopFamilies = []family{
	{"urdma_loop_busy_ratio", "Part of the poll loop's turns that found work, since a scrape at least a second ago.",
		gauge, nil,
		func(v *view, add add) { add(v.busyRatio) }},
	ofWorker("urdma_worker_clients", "Clients of a worker.", gauge,
		func(w *inspect.Worker) float64 { return float64(w.Clients) }),
	ofWorker("urdma_worker_queue_pairs", "Queue pairs of a worker.", gauge,
		func(w *inspect.Worker) float64 { return float64(w.QPs) }),
	ofWorker("urdma_worker_turns_total", "Turns of a worker's poll loop.", counter,
		func(w *inspect.Worker) float64 { return float64(w.Turns) }),
	ofWorker("urdma_worker_busy_turns_total", "Turns of a worker's poll loop that found work.", counter,
		func(w *inspect.Worker) float64 { return float64(w.BusyTurns) }),
	ofWorker("urdma_worker_asleep_seconds_total", "Time that a worker slept.", counter,
		func(w *inspect.Worker) float64 { return float64(w.AsleepNs) / 1e9 }),
	ofWorker("urdma_worker_received_packets_total",
		"Packets that came to a worker's own queues, where there are several workers.", counter,
		func(w *inspect.Worker) float64 { return float64(w.Received) }),
	ofWorker("urdma_worker_handed_on_packets_total", "Those of them that were for another worker, and were copied on.",
		counter, func(w *inspect.Worker) float64 { return float64(w.HandedOn) }),
}

// ofWorker returns a family with one value for each of several workers.
func ofWorker(name, help string, kind prometheus.ValueType, value func(*inspect.Worker) float64) family {
	return family{name, help, kind, []string{"worker"}, func(v *view, add add) {
		for _, w := range v.AllWorkers() {
			add(value(&w), strconv.Itoa(w.Number))
		}
	}}
}
