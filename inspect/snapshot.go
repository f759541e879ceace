package inspect

import (
	"cmp"
	"time"
)

// Format is the version of the snapshot's format. It grows when a field changes its meaning or is removed; new
// fields don't change it.
const Format = 1

// Tags of a count: metric:"name" or "name{label=value}" is its name in metrics, "-" for none; help, with the first
// field of a name, is its meaning. A counting package repeats the JSON name in a tag (package counters).

// Snapshot describes the state of a urdmad. Objects are collected one group after another while the poll loop runs,
// so the snapshot is not of a single instant. Counters, marked as such by their name or comment, count since urdmad
// started or the object was made.
type Snapshot struct {
	Format int       `json:"format"`
	Taken  time.Time `json:"taken"`
	// Restricted: the caller is neither urdmad's owner nor root and sees only the objects of its own uid; Loop,
	// Totals and Handshakes are missing.
	Restricted  bool         `json:"restricted"`
	Daemon      Daemon       `json:"daemon"`
	Loop        *Loop        `json:"loop,omitempty"`
	Workers     []Worker     `json:"workers,omitempty"` // only if there are several; Loop is their sum
	Totals      *Totals      `json:"totals,omitempty"`
	Handshakes  *Handshakes  `json:"handshakes,omitempty"`
	Responder   *Responder   `json:"responder,omitempty"`
	Ports       []Port       `json:"ports"`
	Clients     []Client     `json:"clients"`
	Domains     []Domain     `json:"protection_domains"`
	Regions     []Region     `json:"memory_regions"`
	Windows     []Window     `json:"memory_windows"`
	CQs         []CQ         `json:"completion_queues"`
	QPs         []QP         `json:"queue_pairs"`
	SRQs        []SRQ        `json:"shared_receive_queues"`
	Connections []Connection `json:"connections"`
	Listeners   []Listener   `json:"listeners"`
	Limits      []Limit      `json:"limits"`
	Neighbours  []Neighbour  `json:"neighbours"`
	Groups      []Group      `json:"groups"`
	Injections  []Injection  `json:"injections"`
	Warnings    []Warning    `json:"warnings"`
}

// Warning is a mistake of which a program was warned (urdma exec --warn). Programs that ended recently are
// included.
type Warning struct {
	Number  string    `json:"number"` // urdma explain NUMBER explains it
	Warned  time.Time `json:"warned"`
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	QPN     uint32    `json:"qpn"` // 0: no queue pair
	What    string    `json:"what"`
	Text    string    `json:"text"` // place and description of the mistake
}

// Injection is a fault injected on purpose (urdma inject).
type Injection struct {
	Number    uint32    `json:"number"`
	Statement string    `json:"statement"`
	PID       int       `json:"pid"` // of the process that requested it
	Command   string    `json:"command"`
	UID       int       `json:"uid"`
	Created   time.Time `json:"created"`
	Own       bool      `json:"own"` // applies to that process only, and ends with it
	// "active", "waiting" (after, wait), "ended", or "library" (the library counts it)
	State string `json:"state"`
	Seen  uint64 `json:"seen"` // number of matching events
	Hits  uint64 `json:"hits"` // number of events that it hit
}

// Daemon describes the process.
type Daemon struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	UID     int       `json:"uid"`
	Started time.Time `json:"started"`
	Socket  string    `json:"socket"`
	Config  string    `json:"config"`
	// Scheduling is nil if urdmad has measured nothing.
	Scheduling *Scheduling `json:"scheduling,omitempty"`
}

// Scheduling has the costs of yields and sleeps that urdmad measured at its start, 0 if unknown, and the limits
// that its workers derive from them.
type Scheduling struct {
	ClockNs   int64 `json:"clock_ns"`   // reading the clock
	YieldNs   int64 `json:"yield_ns"`   // a sched_yield after which no other thread ran
	SleepNs   int64 `json:"sleep_ns"`   // a sleep of 1 ns
	WakeNs    int64 `json:"wake_ns"`    // from the write to an eventfd until the waiting thread runs
	KeepsCore bool  `json:"keeps_core"` // a thread that wakes from sleep keeps its core however often it yields

	AloneNs    int64 `json:"alone_ns"`     // during a shorter yield no other thread ran
	YieldForNs int64 `json:"yield_for_ns"` // how long an idle worker yields before it sleeps
	MinSleepNs int64 `json:"min_sleep_ns"` // the worker stays awake if something is due sooner
	CrowdNs    int64 `json:"crowd_ns"`     // how long it sleeps instead of yielding if a program polls on its core
	// number of yields in a row that did not run that program before the worker sleeps
	Misses int `json:"misses"`
}

// Responder answers urdma ping of other hosts. Served and Refused are counters.
type Responder struct {
	Serves  string   `json:"serves"` // "off" or "ping"
	Allow   []string `json:"allow"`  // networks; none: all hosts
	Port    int      `json:"port"`   // in rdma_cm's port space
	Open    int      `json:"open"`   // open connections
	Served  uint64   `json:"served"`
	Refused uint64   `json:"refused"`
}

// Worker is one of several poll loops, with its clients.
type Worker struct {
	Number int `json:"number"`
	Loop
	Clients int `json:"clients"`
	QPs     int `json:"queue_pairs"`
}

// Loop is a worker's poll loop. All fields but Core and LongestGapNs are counters.
type Loop struct {
	Turns        uint64 `json:"turns" metric:"urdma_loop_turns_total" help:"Turns of the poll loop."`
	BusyTurns    uint64 `json:"busy_turns" metric:"urdma_loop_busy_turns_total" help:"Turns of the poll loop that found work."`
	Yields       uint64 `json:"yields" metric:"urdma_loop_yields_total" help:"Times the poll loop gave its core away."`
	Sleeps       uint64 `json:"sleeps" metric:"urdma_loop_sleeps_total" help:"Times the poll loop slept."`
	Wakes        uint64 `json:"wakes" metric:"urdma_loop_wakes_total" help:"Sleeps of the poll loop that work ended, not time."`
	Hogs         uint64 `json:"hogs" metric:"-"`
	AsleepNs     uint64 `json:"asleep_ns" metric:"urdma_loop_asleep_seconds_total" help:"Time the poll loop slept."`
	YieldedNs    uint64 `json:"yielded_ns" metric:"urdma_loop_yielded_seconds_total" help:"Time the poll loop's core was others'."`
	LongestGapNs int64  `json:"longest_gap_ns" metric:"urdma_loop_longest_gap_seconds" help:"Longest time between the starts of two turns without a yield or sleep between."`
	MinorFaults  uint64 `json:"minor_faults" metric:"urdma_loop_page_faults_total{kind=minor}" help:"Page faults of the poll loop."`
	MajorFaults  uint64 `json:"major_faults" metric:"urdma_loop_page_faults_total{kind=major}"`
	Core         int    `json:"core"`
	// With several workers: packets received on this worker's own queues of the ports, and how many of them
	// belonged to another worker and were passed on.
	Received uint64 `json:"packets_received" metric:"-"`
	HandedOn uint64 `json:"packets_handed_on" metric:"-"`
}

// Totals counts over all connections and queue pairs, including those that no longer exist.
type Totals struct {
	QP                Work              `json:"work"`
	Traffic           []Traffic         `json:"traffic"` // by port, in the order of Ports
	BadFrames         map[string]uint64 `json:"bad_frames"`
	NoConnection      uint64            `json:"no_connection" metric:"urdma_discarded_packets_total{reason=no connection}" help:"Well-formed packets that belong to no connection."`
	StrayAddress      uint64            `json:"stray_address" metric:"urdma_discarded_packets_total{reason=wrong address or cookie}"`
	BadAck            uint64            `json:"bad_ack" metric:"urdma_discarded_packets_total{reason=impossible acknowledgement}"`
	ReceiverNotReady  uint64            `json:"receiver_not_ready" metric:"urdma_receiver_not_ready_total" help:"Messages that had to wait for a receive."`
	StartTimeouts     uint64            `json:"mpa_start_timeouts" metric:"urdma_mpa_refused_starts_total{reason=timeout}" help:"Connections over TCP that did not begin."`
	BadStarts         uint64            `json:"mpa_bad_starts" metric:"urdma_mpa_refused_starts_total{reason=malformed}"`
	RefusedStarts     uint64            `json:"mpa_refused" metric:"urdma_mpa_refused_starts_total{reason=not_allowed}"`
	RetainFailed      uint64            `json:"retain_failed" metric:"urdma_retain_failed_total" help:"Packets out of order that could not be kept for want of memory."`
	TerminatesSent    []Terminate       `json:"terminates_sent"`
	TerminatesGot     []Terminate       `json:"terminates_received"`
	SegmentsSent      uint64            `json:"segments_sent" metric:"-"`
	SegmentsPlaced    uint64            `json:"segments_placed" metric:"urdma_placed_segments_total" help:"Segments from the wire placed in clients' memory, on either path."`
	FallbackJobs      uint64            `json:"fallback_jobs" metric:"urdma_fallback_jobs_total" help:"Reads and writes of clients' memory on the fallback path through /proc."`
	LocalMessages     uint64            `json:"local_messages" metric:"urdma_host_messages_total" help:"Messages between two queue pairs of this urdmad, copied once without a packet."`
	LocalBytes        uint64            `json:"local_bytes" metric:"urdma_host_message_bytes_total" help:"Bytes of messages between two queue pairs of this urdmad."`
	ClientFaults      uint64            `json:"client_faults" metric:"urdma_client_faults_total" help:"Clients closed because their memory could not be touched."`
	Panics            uint64            `json:"panics" metric:"urdma_panics_total" help:"Clients closed because serving them met a bug of urdmad."`
	Injected          uint64            `json:"injected" metric:"urdma_injected_total" help:"Faults injected on purpose (urdma inject)."`
	Warned            uint64            `json:"warned" metric:"urdma_warnings_total" help:"Mistakes that programs were warned of (urdma exec --warn)."`
	CompletionOverrun uint64            `json:"completion_overruns" metric:"urdma_completion_queue_overruns_total" help:"Completions lost because a client let its queue fill up."`
	Datagrams
	RoCE
	RawPackets
}

// RawPackets counts frames of queue pairs of type RAW_PACKET.
type RawPackets struct {
	RawSent      uint64 `json:"raw_packets_sent" metric:"urdma_raw_packets_total{path=out}" help:"Frames of queue pairs of type RAW_PACKET."`
	RawReceived  uint64 `json:"raw_packets_received" metric:"urdma_raw_packets_total{path=in}"`
	RawNoReceive uint64 `json:"raw_packets_no_receive" metric:"urdma_dropped_raw_packets_total{reason=no receive posted}" help:"Frames for queue pairs of type RAW_PACKET that were dropped."`
	RawNoRoom    uint64 `json:"raw_packets_no_room" metric:"urdma_dropped_raw_packets_total{reason=receive too short}"`
	RawOverrun   uint64 `json:"raw_packets_overrun" metric:"urdma_dropped_raw_packets_total{reason=too many at once}"`
}

// RoCE counts for ports with RoCEv2; dropped packets come first.
type RoCE struct {
	RoCEMalformed   uint64 `json:"roce_malformed" metric:"urdma_roce_dropped_packets_total{reason=malformed}" help:"RoCEv2 packets that were dropped."`
	RoCEWrongICRC   uint64 `json:"roce_wrong_icrc" metric:"urdma_roce_dropped_packets_total{reason=wrong CRC}"`
	RoCENoQueuePair uint64 `json:"roce_no_queue_pair" metric:"urdma_roce_dropped_packets_total{reason=no queue pair}"`
	RoCEUnsupported uint64 `json:"roce_not_supported" metric:"urdma_roce_dropped_packets_total{reason=not supported}"`
	RoCEDuplicates  uint64 `json:"roce_duplicate_requests" metric:"urdma_roce_dropped_packets_total{reason=duplicate}"`
	RoCEGhosts      uint64 `json:"roce_ghost_packets" metric:"urdma_roce_dropped_packets_total{reason=answers nothing under way}"`
	RoCECNPSent     uint64 `json:"roce_cnp_sent" metric:"urdma_roce_congestion_notices_total{direction=sent}" help:"RoCEv2 notices of congestion (CNP)."`
	RoCECNPHeard    uint64 `json:"roce_cnp_heard" metric:"urdma_roce_congestion_notices_total{direction=heard}"`
	RoCERefused     uint64 `json:"roce_requests_refused" metric:"urdma_roce_refused_requests_total" help:"RoCEv2 requests that ended their connection with a NAK."`
	RoCEUnreachable uint64 `json:"roce_no_neighbour" metric:"urdma_roce_unreachable_total" help:"RoCEv2 connections that failed because nobody answers for the next hop."`
	RoCESent        uint64 `json:"roce_requests_sent" metric:"urdma_roce_requests_total{sent=first}" help:"RoCEv2 request packets sent."`
	RoCESentAgain   uint64 `json:"roce_requests_sent_again" metric:"urdma_roce_requests_total{sent=again}"`
	RoCETimeouts    uint64 `json:"roce_timeouts" metric:"urdma_roce_repeats_total{cause=no answer}" help:"Times requests were sent again from the oldest without an answer."`
	RoCENAKs        uint64 `json:"roce_sequence_errors_heard" metric:"urdma_roce_repeats_total{cause=sequence error}"`
	RoCEGaps        uint64 `json:"roce_answers_missing" metric:"urdma_roce_repeats_total{cause=answer missing}"`
	RoCERNRHeard    uint64 `json:"roce_not_ready_heard" metric:"urdma_roce_repeats_total{cause=receiver not ready}"`
	RoCERNRSaid     uint64 `json:"roce_not_ready_said" metric:"urdma_roce_naks_total{code=receiver not ready}" help:"NAKs sent that have the peer send again."`
	RoCENAKSaid     uint64 `json:"roce_sequence_errors_said" metric:"urdma_roce_naks_total{code=sequence error}"`
}

// Datagrams counts messages between queue pairs of type UD.
type Datagrams struct {
	Sent          uint64 `json:"datagrams_sent" metric:"urdma_datagrams_total{path=out}" help:"Messages of queue pairs of type UD."`
	Received      uint64 `json:"datagrams_received" metric:"urdma_datagrams_total{path=in}"`
	Local         uint64 `json:"datagrams_local" metric:"urdma_datagrams_total{path=host}"`
	Malformed     uint64 `json:"datagrams_malformed" metric:"urdma_dropped_datagrams_total{reason=malformed}" help:"Messages of queue pairs of type UD that were dropped."`
	NoQueuePair   uint64 `json:"datagrams_no_queue_pair" metric:"urdma_dropped_datagrams_total{reason=no queue pair}"`
	WrongQKey     uint64 `json:"datagrams_wrong_qkey" metric:"urdma_dropped_datagrams_total{reason=wrong Q_Key}"`
	NoReceive     uint64 `json:"datagrams_no_receive" metric:"urdma_dropped_datagrams_total{reason=no receive posted}"`
	NoRoom        uint64 `json:"datagrams_no_room" metric:"urdma_dropped_datagrams_total{reason=receive too short}"`
	Torn          uint64 `json:"uc_messages_torn" metric:"urdma_dropped_datagrams_total{reason=part of a torn message}"`
	Late          uint64 `json:"uc_packets_late" metric:"urdma_dropped_datagrams_total{reason=late}"`
	UCRefused     uint64 `json:"uc_messages_refused" metric:"urdma_dropped_datagrams_total{reason=no access}"`
	NoRoute       uint64 `json:"datagrams_no_route" metric:"urdma_dropped_datagrams_total{reason=no route}"`
	NoNeighbour   uint64 `json:"datagrams_no_neighbour" metric:"urdma_dropped_datagrams_total{reason=no neighbour}"`
	NeighbourWait uint64 `json:"datagrams_neighbour_wait" metric:"urdma_dropped_datagrams_total{reason=too many for an unknown neighbour}"`
	GroupWait     uint64 `json:"datagrams_group_wait" metric:"urdma_dropped_datagrams_total{reason=too many for large groups}"`
}

// Terminate is a cause of RFC 5040 and 5041 and its count.
type Terminate struct {
	Layer int    `json:"layer"`
	Type  int    `json:"type"`
	Code  int    `json:"code"`
	Text  string `json:"text"`
	Count uint64 `json:"count"`
}

// Handshakes counts connection management (package cm).
type Handshakes struct {
	Requested   uint64 `json:"requested" metric:"urdma_connection_requests_total" help:"Connection requests delivered to listeners."`
	Accepted    uint64 `json:"accepted" metric:"urdma_connections_accepted_total" help:"Connection requests that clients accepted."`
	Rejected    uint64 `json:"rejected" metric:"urdma_connections_rejected_total" help:"Connection requests that clients rejected."`
	Refused     uint64 `json:"refused" metric:"urdma_connections_refused_total" help:"Connection requests to ports nobody listens on."`
	Retried     uint64 `json:"retried" metric:"urdma_connection_retries_total" help:"Connection requests whose sender was asked to prove its address."`
	TimedOut    uint64 `json:"timed_out" metric:"urdma_connections_timed_out_total" help:"Handshakes given up."`
	Established uint64 `json:"established" metric:"urdma_connections_established_total" help:"Connections established."`
	Ended       uint64 `json:"ended" metric:"urdma_connections_ended_total" help:"Connections ended."`
}

// Port is a network port.
type Port struct {
	Name      string `json:"name"`
	Device    string `json:"device"` // the device that programs see
	Number    int    `json:"number"` // number of the port on the device, from 1
	Driver    string `json:"driver"`
	Address   string `json:"address"` // with prefix length
	MAC       string `json:"mac"`
	MTU       int    `json:"mtu"` // largest IPv4 packet in bytes
	Transport string `json:"transport"`
	Protocol  string `json:"protocol"` // "trp" or "rocev2"
	LinkUp    bool   `json:"link_up"`
	Interface string `json:"interface"`   // the kernel's network interface under the port; "" for none
	Vdev      string `json:"vdev"`        // or PCI address, as in urdma.json
	GID       string `json:"gid"`         // last entry of the GID table, in the form of an IPv6 address
	LID       uint16 `json:"lid"`         // 0: none
	Rate      string `json:"rate"`        // in the form of sysfs
	QPs       int    `json:"queue_pairs"` // queue pairs of the device
	MaxQPs    int    `json:"max_queue_pairs"`
	// Discarded counts dropped packets by reason; reasons with count 0 are missing.
	Discarded map[string]uint64 `json:"discarded,omitempty"`
	Offloads  string            `json:"offloads,omitempty"` // offloads of the kernel in words; udp ports only
	LinkUps   uint64            `json:"link_ups" metric:"-"`
	LinkDowns uint64            `json:"link_downs" metric:"urdma_port_link_downs_total" help:"Times the link went down after it was up."`
	RxPackets uint64            `json:"rx_packets" metric:"urdma_port_receive_packets_total" help:"Frames received."`
	TxPackets uint64            `json:"tx_packets" metric:"urdma_port_transmit_packets_total" help:"Frames sent."`
	RxBytes   uint64            `json:"rx_bytes" metric:"urdma_port_receive_bytes_total" help:"Bytes of frames received, Ethernet header included."`
	TxBytes   uint64            `json:"tx_bytes" metric:"urdma_port_transmit_bytes_total" help:"Bytes of frames sent, Ethernet header included."`
	RxDropped uint64            `json:"rx_dropped" metric:"urdma_port_receive_dropped_total" help:"Frames that arrived while the receive ring was full."`
	TxDropped uint64            `json:"tx_dropped" metric:"urdma_port_transmit_dropped_total" help:"Frames to be sent while the link was down."`
	RxErrors  uint64            `json:"rx_errors" metric:"urdma_port_receive_errors_total" help:"Malformed frames or descriptors from the other side."`
	NoBuffer  uint64            `json:"no_buffer" metric:"urdma_port_no_buffer_total" help:"Times no buffer was free."`
}

// Object has the fields common to all objects of a client.
type Object struct {
	Client  uint64    `json:"client"` // Client.ID
	PID     int       `json:"pid"`    // 0 if the process is in another PID namespace
	Command string    `json:"command"`
	Handle  uint32    `json:"handle"`
	Device  string    `json:"device"` // "" for an id that is not bound
	Created time.Time `json:"created"`
}

// Made compares objects by the order in which their clients made them.
func (o Object) Made(p Object) int {
	return cmp.Or(cmp.Compare(o.Client, p.Client), cmp.Compare(o.Handle, p.Handle))
}

// Client is a process that uses urdmad.
type Client struct {
	ID        uint64    `json:"id"`
	PID       int       `json:"pid"`
	UID       int       `json:"uid"`
	Command   string    `json:"command"`      // program name, reported by the client
	Line      string    `json:"command_line"` // from /proc
	Connected time.Time `json:"connected"`
	Contexts  int       `json:"contexts"`
	Domains   int       `json:"protection_domains"`
	Regions   int       `json:"memory_regions"`
	CQs       int       `json:"completion_queues"`
	QPs       int       `json:"queue_pairs"`
	IDs       int       `json:"cm_ids"`
	// Registered memory, by the way in which urdmad accesses it.
	SharedRegions   int    `json:"shared_regions"`
	FallbackRegions int    `json:"fallback_regions"`
	SharedBytes     uint64 `json:"shared_bytes"`
	FallbackBytes   uint64 `json:"fallback_bytes"`
	EventsWaiting   int    `json:"events_waiting"` // events that the client has not read
}

// Domain is a protection domain.
type Domain struct {
	Object
	Number  uint64 `json:"number"` // unique over all clients
	Regions int    `json:"memory_regions"`
	QPs     int    `json:"queue_pairs"`
}

// Region is a memory region.
type Region struct {
	Object
	Domain uint64 `json:"protection_domain"`
	Start  uint64 `json:"start"` // address in work requests
	Length uint64 `json:"length"`
	LKey   uint32 `json:"lkey"`
	RKey   uint32 `json:"rkey"`
	Access uint32 `json:"access"` // enum ibv_access_flags
	// Path is "shared" or "fallback".
	Path string `json:"path"`
	// Reason says why Path is "fallback", in the words of the program's library.
	Reason string `json:"reason,omitempty"`
}

// Window is a memory window. While it is not bound, the fields about its binding are 0.
type Window struct {
	Object
	Domain uint64 `json:"protection_domain"` // Domain.Number
	Type   int    `json:"type"`
	RKey   uint32 `json:"rkey"`
	Bound  bool   `json:"bound"`
	Region uint32 `json:"region"` // Region.LKey
	Start  uint64 `json:"start"`  // address in the peer's requests
	Length uint64 `json:"length"`
	Access uint32 `json:"access"` // enum ibv_access_flags
	QPN    uint32 `json:"qpn"`    // type 2: the only queue pair whose peer may use the window
}

// CQ is a completion queue.
type CQ struct {
	Object
	Depth   int    `json:"depth"`
	Fill    int    `json:"fill"` // completions not yet polled
	Channel bool   `json:"channel"`
	Armed   string `json:"armed"`  // "no", "solicited" or "any"
	Events  uint64 `json:"events"` // events sent on the channel
	Overrun bool   `json:"overrun"`
	QPs     int    `json:"queue_pairs"`
}

// SRQ is a shared receive queue.
type SRQ struct {
	Object
	Domain uint64 `json:"protection_domain"` // Domain.Number
	Depth  int    `json:"depth"`
	Fill   int    `json:"fill"`  // receives posted and not yet used
	Limit  int    `json:"limit"` // an event is raised below this number of receives; 0: never
	QPs    int    `json:"queue_pairs"`
	Number uint32 `json:"number"` // the number that peers use, for an SRQ in an XRC domain; otherwise 0
}

// Work counts what a queue pair has done.
type Work struct {
	SendsPosted  uint64 `json:"sends_posted" metric:"urdma_work_requests_posted_total{queue=send}" help:"Work requests posted."`
	RecvsPosted  uint64 `json:"receives_posted" metric:"urdma_work_requests_posted_total{queue=receive}"`
	MessagesSent uint64 `json:"messages_sent" metric:"urdma_messages_total{direction=out}" help:"Messages of queue pairs."`
	MessagesRecv uint64 `json:"messages_received" metric:"urdma_messages_total{direction=in}"`
	BytesSent    uint64 `json:"bytes_sent" metric:"urdma_message_bytes_total{direction=out}" help:"Bytes of messages of queue pairs."`
	BytesRecv    uint64 `json:"bytes_received" metric:"urdma_message_bytes_total{direction=in}"`
	FallbackJobs uint64 `json:"fallback_jobs" metric:"-"`
}

// Traffic counts a connection's segments and packets.
type Traffic struct {
	TxPackets uint64 `json:"tx_packets" metric:"-"`
	RxPackets uint64 `json:"rx_packets" metric:"-"`
	// sent, without retransmissions
	Segments uint64 `json:"segments" metric:"urdma_segments_sent_total" help:"New DDP segments sent; those sent again don't count."`
	// of those segments
	Bytes uint64 `json:"bytes" metric:"urdma_segment_bytes_sent_total" help:"Bytes of new DDP segments sent."`
	// segments that were sent again, for any reason
	Resent uint64 `json:"resent" metric:"urdma_retransmitted_segments_total" help:"Segments sent again, for all causes."`
	// detected by selective acknowledgement
	Lost uint64 `json:"lost" metric:"urdma_lost_segments_total" help:"Segments found lost by selective acknowledgement."`
	// retransmission timeouts
	Timeouts   uint64 `json:"timeouts" metric:"urdma_retransmission_timeouts_total" help:"Retransmission timeouts."`
	TailProbes uint64 `json:"tail_probes" metric:"urdma_tail_probes_total" help:"Tail loss probes."`
	// unnecessary retransmissions
	Needless  uint64 `json:"needless" metric:"urdma_needless_retransmissions_total" help:"Events that showed a retransmission to have been needless."`
	Delivered uint64 `json:"delivered" metric:"urdma_segments_received_total" help:"Segments received in order."`
	// arrived out of order
	Reordered     uint64 `json:"reordered" metric:"urdma_reordered_segments_total" help:"Segments received out of order."`
	Duplicates    uint64 `json:"duplicates" metric:"urdma_duplicate_segments_total" help:"Segments received again."`
	OutsideWindow uint64 `json:"outside_window" metric:"urdma_outside_window_segments_total" help:"Segments received outside the connection's window."`
}

// Wire is the current state of a connection over the wire.
type Wire struct {
	State     string `json:"state"`
	Protocol  string `json:"protocol"`  // ProtocolUDP or ProtocolTCP
	SilentNs  int64  `json:"silent_ns"` // since the last packet of the peer; 0 before the first
	Payload   int    `json:"payload"`   // bytes in a tagged segment
	PathMTU   int    `json:"path_mtu"`  // largest IP packet known to pass; the port's MTU if nothing else is known
	InFlight  int    `json:"in_flight"` // segments
	Window    int    `json:"window"`    // congestion window, segments
	Credits   int    `json:"credits"`   // segments that the peer still accepts
	Held      int    `json:"held"`      // received out of order, waiting for a gap to close
	RTTNs     int64  `json:"rtt_ns"`    // smoothed; 0 before the first sample
	RTTVarNs  int64  `json:"rtt_var_ns"`
	MinRTTNs  int64  `json:"min_rtt_ns"`
	TimeoutNs int64  `json:"timeout_ns"` // retransmission timeout
	Traffic
}

// QP is a queue pair.
type QP struct {
	Object
	QPN    uint32 `json:"qpn"`
	Domain uint64 `json:"protection_domain"`
	Type   string `json:"type"`
	State  string `json:"state"`
	// in state ERR or SQE: the reason, as a number for urdma explain and in words
	Error  string `json:"error,omitempty"`
	SendCQ uint32 `json:"send_cq"` // handles
	RecvCQ uint32 `json:"recv_cq"`
	// Send and receive queue: number of slots, and of slots in use.
	SendDepth int `json:"send_depth"`
	SendFill  int `json:"send_fill"`
	RecvDepth int `json:"recv_depth"`
	RecvFill  int `json:"recv_fill"`
	// Outstanding Reads: requested by us, and by the peer.
	ReadsOut int `json:"reads_out"`
	ReadsIn  int `json:"reads_in"`
	// Path is "host" between two queue pairs of this urdmad, "wire", or ""
	// without a connection.
	Path  string `json:"path"`
	Local string `json:"local"` // address:port
	Peer  string `json:"peer"`
	// FallbackWaiting counts unfinished jobs on the fallback path.
	FallbackWaiting uint64 `json:"fallback_waiting"`
	Work
	// Wire is nil for other paths.
	Wire *Wire `json:"wire,omitempty"`
}

// Connection is an rdma_cm id that does not listen.
type Connection struct {
	Object
	State  string `json:"state"`
	Side   string `json:"side"` // "active", "passive", SideNumber, or "" before it is either
	Local  string `json:"local"`
	Peer   string `json:"peer"`
	QPN    uint32 `json:"qpn"` // 0: none
	Path   string `json:"path"`
	Reads  int    `json:"reads"`        // Reads that we may have outstanding (ORD)
	Serves int    `json:"serves_reads"` // Reads that we serve at once (IRD)
	Tries  int    `json:"tries"`        // repetitions of the last handshake message
	Work
	Wire *Wire `json:"wire,omitempty"`
}

// SideNumber is the side of a connection that both programs make by queue pair number (ibv_modify_qp(3)), without
// rdma_cm.
const SideNumber = "number"

// Listener is an rdma_cm id that listens.
type Listener struct {
	Object
	Local   string `json:"local"`
	Backlog int    `json:"backlog"`
	Pending int    `json:"pending"` // requests not yet answered
}

// Limit is the use of a resource and its upper limit.
type Limit struct {
	Of      string `json:"of"`      // OfClient, OfUser or OfAll
	Client  uint64 `json:"client"`  // Client.ID, for OfClient
	PID     int    `json:"pid"`     // for OfClient
	Command string `json:"command"` // for OfClient
	UID     int    `json:"uid"`     // for OfClient and OfUser; otherwise -1
	Name    string `json:"name"`    // name as in limits of urdma.json, or of a resource that the machine limits
	Used    uint64 `json:"used"`
	Allowed uint64 `json:"allowed"` // 0: no limit
}

// Scope of a Limit.
const (
	OfClient = "client"
	OfUser   = "user" // all clients of the user together
	OfAll    = "all"  // all clients together
)

// Neighbour is a host on a port's link.
type Neighbour struct {
	Port    string `json:"port"`
	Address string `json:"address"`
	MAC     string `json:"mac"`   // "" until it is known
	State   string `json:"state"` // as in ip-neighbour(8): REACHABLE, PROBE or INCOMPLETE
}

// Group is a multicast group whose packets a port accepts.
type Group struct {
	Port    string `json:"port"`
	Address string `json:"address"`
	MAC     string `json:"mac"`
	Joined  int    `json:"joined"` // number of joins by queue pairs and ids; 0: the port itself joined
}
