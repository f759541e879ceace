package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"urdma/inspect"
)

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// add gives one value of a family, with the family's labels in order.
type add func(value float64, labels ...string)

// family is a metric with all its labels.
type family struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	values     func(v *view, add add)
}

// view is a snapshot with sums that several families need.
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

// families is every metric, in groups.
func families() (all []family) {
	for _, group := range [][]family{daemonFamilies, portFamilies, trafficFamilies, objectFamilies, workFamilies,
		troubleFamilies, handshakeFamilies, loopFamilies} {
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

// port makes a family with one value a port.
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
	port("urdma_port_mtu_bytes", "Largest IPv4 packet of the port.", gauge, func(p *inspect.Port) float64 { return float64(p.MTU) }),
	port("urdma_port_link_downs_total", "Times the link went down after it was up.", counter, func(p *inspect.Port) float64 { return float64(p.LinkDowns) }),
	port("urdma_port_receive_packets_total", "Frames received.", counter, func(p *inspect.Port) float64 { return float64(p.RxPackets) }),
	port("urdma_port_transmit_packets_total", "Frames sent.", counter, func(p *inspect.Port) float64 { return float64(p.TxPackets) }),
	port("urdma_port_receive_bytes_total", "Bytes of frames received, Ethernet header included.", counter, func(p *inspect.Port) float64 { return float64(p.RxBytes) }),
	port("urdma_port_transmit_bytes_total", "Bytes of frames sent, Ethernet header included.", counter, func(p *inspect.Port) float64 { return float64(p.TxBytes) }),
	port("urdma_port_receive_dropped_total", "Frames that arrived while the receive ring was full.", counter, func(p *inspect.Port) float64 { return float64(p.RxDropped) }),
	port("urdma_port_transmit_dropped_total", "Frames to be sent while the link was down.", counter, func(p *inspect.Port) float64 { return float64(p.TxDropped) }),
	port("urdma_port_receive_errors_total", "Malformed frames or descriptors from the other side.", counter, func(p *inspect.Port) float64 { return float64(p.RxErrors) }),
	port("urdma_port_no_buffer_total", "Times no buffer was free.", counter, func(p *inspect.Port) float64 { return float64(p.NoBuffer) }),
}

// traffic makes a counter with the sum of all connections of a port.
func traffic(name, help string, value func(*inspect.Traffic) uint64) family {
	return family{name, help, counter, []string{"port"}, func(v *view, add add) {
		for i := range v.Ports {
			add(float64(value(&v.traffic[i])), v.Ports[i].Name)
		}
	}}
}

var trafficFamilies = []family{
	traffic("urdma_segments_sent_total", "New DDP segments sent; those sent again don't count.", func(t *inspect.Traffic) uint64 { return t.Segments }),
	traffic("urdma_segment_bytes_sent_total", "Bytes of new DDP segments sent.", func(t *inspect.Traffic) uint64 { return t.Bytes }),
	traffic("urdma_retransmitted_segments_total", "Segments sent again, for all causes.", func(t *inspect.Traffic) uint64 { return t.Resent }),
	traffic("urdma_lost_segments_total", "Segments found lost by selective acknowledgement.", func(t *inspect.Traffic) uint64 { return t.Lost }),
	traffic("urdma_retransmission_timeouts_total", "Retransmission timeouts.", func(t *inspect.Traffic) uint64 { return t.Timeouts }),
	traffic("urdma_tail_probes_total", "Tail loss probes.", func(t *inspect.Traffic) uint64 { return t.TailProbes }),
	traffic("urdma_needless_retransmissions_total", "Events that showed a retransmission to have been needless.", func(t *inspect.Traffic) uint64 { return t.Needless }),
	traffic("urdma_segments_received_total", "Segments received in order.", func(t *inspect.Traffic) uint64 { return t.Delivered }),
	traffic("urdma_reordered_segments_total", "Segments received out of order.", func(t *inspect.Traffic) uint64 { return t.Reordered }),
	traffic("urdma_duplicate_segments_total", "Segments received again.", func(t *inspect.Traffic) uint64 { return t.Duplicates }),
	traffic("urdma_outside_window_segments_total", "Segments received outside the connection's window.", func(t *inspect.Traffic) uint64 { return t.OutsideWindow }),
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

// states are all that are shown, also at 0.
var (
	qpStates = []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}
	idStates = []string{"idle", "bound", "resolving", "resolved", "routed", "connecting", "requested", "accepting", "connected", "ended"}
)

// tally counts objects by a name, and adds every name of all.
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
		tally(len(v.QPs), func(i int) string { return v.QPs[i].State }, qpStates, add)
	}},
	{"urdma_connections", "rdma_cm ids that don't listen.", gauge, []string{"state"}, func(v *view, add add) {
		tally(len(v.Connections), func(i int) string { return v.Connections[i].State }, idStates, add)
	}},
	{"urdma_listeners", "rdma_cm ids that listen.", gauge, nil, func(v *view, add add) { add(float64(len(v.Listeners))) }},
	{"urdma_completion_queues", "Completion queues.", gauge, nil, func(v *view, add add) { add(float64(len(v.CQs))) }},
	{"urdma_protection_domains", "Protection domains.", gauge, nil, func(v *view, add add) { add(float64(len(v.Domains))) }},
	{"urdma_memory_regions", "Memory regions by how urdmad reaches them.", gauge, []string{"path"}, func(v *view, add add) {
		tally(len(v.Regions), func(i int) string { return v.Regions[i].Path }, []string{"shared", "fallback"}, add)
	}},
	{"urdma_registered_bytes", "Bytes of memory regions by how urdmad reaches them.", gauge, []string{"path"}, func(v *view, add add) {
		var shared, fallback uint64
		for i := range v.Clients {
			shared += v.Clients[i].SharedBytes
			fallback += v.Clients[i].FallbackBytes
		}
		add(float64(shared), "shared")
		add(float64(fallback), "fallback")
	}},
}

// total makes a counter of urdmad as a whole.
func total(name, help string, value func(*view) uint64) family {
	return family{name, help, counter, nil, func(v *view, add add) { add(float64(value(v))) }}
}

var workFamilies = []family{
	{"urdma_work_requests_posted_total", "Work requests posted.", counter, []string{"queue"}, func(v *view, add add) {
		add(float64(v.work.SendsPosted), "send")
		add(float64(v.work.RecvsPosted), "receive")
	}},
	{"urdma_messages_total", "Messages of queue pairs.", counter, []string{"direction"}, func(v *view, add add) {
		add(float64(v.work.MessagesSent), "out")
		add(float64(v.work.MessagesRecv), "in")
	}},
	{"urdma_message_bytes_total", "Bytes of messages of queue pairs.", counter, []string{"direction"}, func(v *view, add add) {
		add(float64(v.work.BytesSent), "out")
		add(float64(v.work.BytesRecv), "in")
	}},
	total("urdma_placed_segments_total", "Segments from the wire placed in clients' memory, on either path.", func(v *view) uint64 { return v.Totals.SegmentsPlaced }),
	total("urdma_fallback_jobs_total", "Reads and writes of clients' memory on the fallback path through /proc.", func(v *view) uint64 { return v.Totals.FallbackJobs }),
	total("urdma_host_messages_total", "Messages between two queue pairs of this urdmad, copied once without a packet.", func(v *view) uint64 { return v.Totals.LocalMessages }),
}

func terminates(direction string, list []inspect.Terminate, add add) {
	for i := range list {
		add(float64(list[i].Count), direction, list[i].Text)
	}
}

var troubleFamilies = []family{
	{"urdma_terminates_total", "Terminate messages by cause (RFC 5040 section 4.8).", counter, []string{"direction", "cause"}, func(v *view, add add) {
		terminates("out", v.Totals.TerminatesSent, add)
		terminates("in", v.Totals.TerminatesGot, add)
	}},
	{"urdma_bad_frames_total", "Frames that break a protocol, by what is wrong.", counter, []string{"reason"}, func(v *view, add add) {
		for reason, n := range v.Totals.BadFrames {
			add(float64(n), reason)
		}
	}},
	{"urdma_discarded_packets_total", "Well-formed packets that belong to no connection.", counter, []string{"reason"}, func(v *view, add add) {
		add(float64(v.Totals.NoConnection), "no connection")
		add(float64(v.Totals.StrayAddress), "wrong address or cookie")
		add(float64(v.Totals.BadAck), "impossible acknowledgement")
	}},
	total("urdma_receiver_not_ready_total", "Messages that had to wait for a receive.", func(v *view) uint64 { return v.Totals.ReceiverNotReady }),
	total("urdma_retain_failed_total", "Packets out of order that could not be kept for want of memory.", func(v *view) uint64 { return v.Totals.RetainFailed }),
	total("urdma_completion_queue_overruns_total", "Completions lost because a client let its queue fill up.", func(v *view) uint64 { return v.Totals.CompletionOverrun }),
	total("urdma_client_faults_total", "Clients closed because their memory could not be touched.", func(v *view) uint64 { return v.Totals.ClientFaults }),
}

var handshakeFamilies = []family{
	total("urdma_connection_requests_total", "Connection requests delivered to listeners.", func(v *view) uint64 { return v.Handshakes.Requested }),
	total("urdma_connections_accepted_total", "Connection requests that clients accepted.", func(v *view) uint64 { return v.Handshakes.Accepted }),
	total("urdma_connections_rejected_total", "Connection requests that clients rejected.", func(v *view) uint64 { return v.Handshakes.Rejected }),
	total("urdma_connections_refused_total", "Connection requests to ports nobody listens on.", func(v *view) uint64 { return v.Handshakes.Refused }),
	total("urdma_connections_timed_out_total", "Handshakes given up.", func(v *view) uint64 { return v.Handshakes.TimedOut }),
	total("urdma_connections_established_total", "Connections established.", func(v *view) uint64 { return v.Handshakes.Established }),
	total("urdma_connections_ended_total", "Connections ended.", func(v *view) uint64 { return v.Handshakes.Ended }),
}

var loopFamilies = []family{
	total("urdma_loop_turns_total", "Turns of the poll loop.", func(v *view) uint64 { return v.Loop.Turns }),
	total("urdma_loop_busy_turns_total", "Turns of the poll loop that found work.", func(v *view) uint64 { return v.Loop.BusyTurns }),
	total("urdma_loop_yields_total", "Times the poll loop gave its core away.", func(v *view) uint64 { return v.Loop.Yields }),
	total("urdma_loop_sleeps_total", "Times the poll loop slept.", func(v *view) uint64 { return v.Loop.Sleeps }),
	total("urdma_loop_wakes_total", "Sleeps of the poll loop that work ended, not time.", func(v *view) uint64 { return v.Loop.Wakes }),
	{"urdma_loop_asleep_seconds_total", "Time the poll loop slept.", counter, nil, func(v *view, add add) { add(float64(v.Loop.AsleepNs) / 1e9) }},
	{"urdma_loop_yielded_seconds_total", "Time the poll loop's core was others'.", counter, nil, func(v *view, add add) { add(float64(v.Loop.YieldedNs) / 1e9) }},
	{"urdma_loop_busy_ratio", "Part of the poll loop's turns that found work, since a scrape at least a second ago.", gauge, nil,
		func(v *view, add add) { add(v.busyRatio) }},
	{"urdma_loop_longest_gap_seconds", "Longest time between the starts of two turns without a yield or sleep between.", gauge, nil,
		func(v *view, add add) { add(float64(v.Loop.LongestGapNs) / 1e9) }},
}
