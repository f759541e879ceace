package inspect

import "time"

// Format is the version of the snapshot's form. It grows when a field changes
// its meaning or goes away; new fields alone don't change it.
const Format = 1

// Snapshot is what an urdmad consists of. Objects are gathered one group after
// another while the poll loop goes on, so it is not one instant's. Numbers that
// only grow say so by their name or comment; they count since urdmad started,
// or since the object was made.
type Snapshot struct {
	Format int       `json:"format"`
	Taken  time.Time `json:"taken"`
	// Restricted: the caller is neither urdmad's owner nor root and sees only
	// the objects of its own uid; Loop, Totals and Handshakes are missing.
	Restricted  bool         `json:"restricted"`
	Daemon      Daemon       `json:"daemon"`
	Loop        *Loop        `json:"loop,omitempty"`
	Totals      *Totals      `json:"totals,omitempty"`
	Handshakes  *Handshakes  `json:"handshakes,omitempty"`
	Ports       []Port       `json:"ports"`
	Clients     []Client     `json:"clients"`
	Domains     []Domain     `json:"protection_domains"`
	Regions     []Region     `json:"memory_regions"`
	CQs         []CQ         `json:"completion_queues"`
	QPs         []QP         `json:"queue_pairs"`
	Connections []Connection `json:"connections"`
	Listeners   []Listener   `json:"listeners"`
}

// Daemon describes the process.
type Daemon struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	UID     int       `json:"uid"`
	Started time.Time `json:"started"`
	Socket  string    `json:"socket"`
	Config  string    `json:"config"`
}

// Loop is the worker's poll loop. All but Core and LongestGapNs only grow.
type Loop struct {
	Turns        uint64 `json:"turns"`
	BusyTurns    uint64 `json:"busy_turns"`
	Yields       uint64 `json:"yields"`
	Sleeps       uint64 `json:"sleeps"`
	Wakes        uint64 `json:"wakes"`
	Hogs         uint64 `json:"hogs"`
	AsleepNs     uint64 `json:"asleep_ns"`
	YieldedNs    uint64 `json:"yielded_ns"`
	LongestGapNs int64  `json:"longest_gap_ns"`
	Core         int    `json:"core"`
}

// Totals counts over all connections and queue pairs, those gone included.
type Totals struct {
	QP                Work              `json:"work"`
	Traffic           []Traffic         `json:"traffic"` // by port, in the order of Ports
	BadFrames         map[string]uint64 `json:"bad_frames"`
	NoConnection      uint64            `json:"no_connection"`
	StrayAddress      uint64            `json:"stray_address"`
	BadAck            uint64            `json:"bad_ack"`
	ReceiverNotReady  uint64            `json:"receiver_not_ready"`
	RetainFailed      uint64            `json:"retain_failed"`
	TerminatesSent    []Terminate       `json:"terminates_sent"`
	TerminatesGot     []Terminate       `json:"terminates_received"`
	SegmentsSent      uint64            `json:"segments_sent"`
	SegmentsPlaced    uint64            `json:"segments_placed"`
	FallbackJobs      uint64            `json:"fallback_jobs"`
	LocalMessages     uint64            `json:"local_messages"`
	ClientFaults      uint64            `json:"client_faults"`
	CompletionOverrun uint64            `json:"completion_overruns"`
}

// Terminate is a cause of RFC 5040 and 5041 and how often it came.
type Terminate struct {
	Layer int    `json:"layer"`
	Type  int    `json:"type"`
	Code  int    `json:"code"`
	Text  string `json:"text"`
	Count uint64 `json:"count"`
}

// Handshakes counts what package cm did.
type Handshakes struct {
	Requested   uint64 `json:"requested"`
	Accepted    uint64 `json:"accepted"`
	Rejected    uint64 `json:"rejected"`
	Refused     uint64 `json:"refused"`
	TimedOut    uint64 `json:"timed_out"`
	Established uint64 `json:"established"`
	Ended       uint64 `json:"ended"`
}

// Port is a network port.
type Port struct {
	Name      string `json:"name"`
	Driver    string `json:"driver"`
	Address   string `json:"address"` // with its prefix length
	MAC       string `json:"mac"`
	MTU       int    `json:"mtu"` // bytes of the largest IPv4 packet
	Transport string `json:"transport"`
	LinkUp    bool   `json:"link_up"`
	LinkUps   uint64 `json:"link_ups"`
	LinkDowns uint64 `json:"link_downs"`
	RxPackets uint64 `json:"rx_packets"`
	TxPackets uint64 `json:"tx_packets"`
	RxBytes   uint64 `json:"rx_bytes"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxDropped uint64 `json:"rx_dropped"`
	TxDropped uint64 `json:"tx_dropped"`
	RxErrors  uint64 `json:"rx_errors"`
	NoBuffer  uint64 `json:"no_buffer"`
}

// Owner is the client that an object belongs to.
type Owner struct {
	Client  uint64 `json:"client"` // Client.ID
	PID     int    `json:"pid"`    // 0 where it is in another PID namespace
	Command string `json:"command"`
}

// Client is a process that uses urdmad.
type Client struct {
	ID        uint64    `json:"id"`
	PID       int       `json:"pid"`
	UID       int       `json:"uid"`
	Command   string    `json:"command"`      // program name, as the client says
	Line      string    `json:"command_line"` // as /proc says
	Connected time.Time `json:"connected"`
	Contexts  int       `json:"contexts"`
	Domains   int       `json:"protection_domains"`
	Regions   int       `json:"memory_regions"`
	CQs       int       `json:"completion_queues"`
	QPs       int       `json:"queue_pairs"`
	IDs       int       `json:"cm_ids"`
	// Registered memory by how urdmad reaches it.
	SharedRegions   int    `json:"shared_regions"`
	FallbackRegions int    `json:"fallback_regions"`
	SharedBytes     uint64 `json:"shared_bytes"`
	FallbackBytes   uint64 `json:"fallback_bytes"`
	EventsWaiting   int    `json:"events_waiting"` // events that it has not taken
}

// Domain is a protection domain.
type Domain struct {
	Owner
	Number  uint64    `json:"number"` // unique over all clients
	Handle  uint32    `json:"handle"`
	Device  string    `json:"device"`
	Created time.Time `json:"created"`
	Regions int       `json:"memory_regions"`
	QPs     int       `json:"queue_pairs"`
}

// Region is a memory region.
type Region struct {
	Owner
	Handle  uint32    `json:"handle"`
	Domain  uint64    `json:"protection_domain"`
	Created time.Time `json:"created"`
	Start   uint64    `json:"start"` // as work requests name it
	Length  uint64    `json:"length"`
	LKey    uint32    `json:"lkey"`
	RKey    uint32    `json:"rkey"`
	Access  uint32    `json:"access"` // enum ibv_access_flags
	// Path is "shared" or "fallback".
	Path string `json:"path"`
}

// CQ is a completion queue.
type CQ struct {
	Owner
	Handle  uint32    `json:"handle"`
	Device  string    `json:"device"`
	Created time.Time `json:"created"`
	Depth   int       `json:"depth"`
	Fill    int       `json:"fill"` // completions not polled yet
	Channel bool      `json:"channel"`
	Armed   string    `json:"armed"`  // "no", "solicited" or "any"
	Events  uint64    `json:"events"` // sent on the channel
	Overrun bool      `json:"overrun"`
	QPs     int       `json:"queue_pairs"`
}

// Work is what a queue pair has done. All of it only grows.
type Work struct {
	SendsPosted  uint64 `json:"sends_posted"`
	RecvsPosted  uint64 `json:"receives_posted"`
	MessagesSent uint64 `json:"messages_sent"`
	MessagesRecv uint64 `json:"messages_received"`
	BytesSent    uint64 `json:"bytes_sent"`
	BytesRecv    uint64 `json:"bytes_received"`
	FallbackJobs uint64 `json:"fallback_jobs"`
}

// Traffic counts a connection's segments and packets. All of it only grows.
type Traffic struct {
	TxPackets     uint64 `json:"tx_packets"`
	RxPackets     uint64 `json:"rx_packets"`
	Segments      uint64 `json:"segments"` // sent, without those sent again
	Bytes         uint64 `json:"bytes"`    // of those
	Resent        uint64 `json:"resent"`   // segments, for all causes
	Lost          uint64 `json:"lost"`     // found lost by selective acknowledgement
	Timeouts      uint64 `json:"timeouts"` // retransmission timeouts
	TailProbes    uint64 `json:"tail_probes"`
	Needless      uint64 `json:"needless"` // retransmissions that were
	Delivered     uint64 `json:"delivered"`
	Reordered     uint64 `json:"reordered"` // arrived out of order
	Duplicates    uint64 `json:"duplicates"`
	OutsideWindow uint64 `json:"outside_window"`
}

// Wire is a connection's present state on the wire.
type Wire struct {
	State     string `json:"state"`
	Extended  bool   `json:"extended"`
	Payload   int    `json:"payload"`   // bytes in a tagged segment
	InFlight  int    `json:"in_flight"` // segments
	Window    int    `json:"window"`    // congestion window, segments
	Credits   int    `json:"credits"`   // what the peer still allows, segments
	Held      int    `json:"held"`      // out of order, waiting for a gap to close
	RTTNs     int64  `json:"rtt_ns"`    // smoothed; 0 before the first sample
	RTTVarNs  int64  `json:"rtt_var_ns"`
	MinRTTNs  int64  `json:"min_rtt_ns"`
	TimeoutNs int64  `json:"timeout_ns"` // retransmission timeout
	Traffic
}

// QP is a queue pair.
type QP struct {
	Owner
	QPN     uint32    `json:"qpn"`
	Handle  uint32    `json:"handle"`
	Device  string    `json:"device"`
	Domain  uint64    `json:"protection_domain"`
	Created time.Time `json:"created"`
	Type    string    `json:"type"`
	State   string    `json:"state"`
	SendCQ  uint32    `json:"send_cq"` // handles
	RecvCQ  uint32    `json:"recv_cq"`
	// Send and receive queue: slots, and those that are taken.
	SendDepth int `json:"send_depth"`
	SendFill  int `json:"send_fill"`
	RecvDepth int `json:"recv_depth"`
	RecvFill  int `json:"recv_fill"`
	// Reads under way: asked for by us, and by the peer.
	ReadsOut int `json:"reads_out"`
	ReadsIn  int `json:"reads_in"`
	// Path is "host" between two queue pairs of this urdmad, "wire", or ""
	// without a connection.
	Path  string `json:"path"`
	Local string `json:"local"` // address:port
	Peer  string `json:"peer"`
	// FallbackWaiting counts jobs on the fallback path that have not ended.
	FallbackWaiting uint64 `json:"fallback_waiting"`
	Work
	// Wire is missing for other paths.
	Wire *Wire `json:"wire,omitempty"`
}

// Connection is an rdma_cm id that does not listen.
type Connection struct {
	Owner
	Handle  uint32    `json:"handle"`
	Device  string    `json:"device"`
	Created time.Time `json:"created"`
	State   string    `json:"state"`
	Side    string    `json:"side"` // "active", "passive", or "" while neither
	Local   string    `json:"local"`
	Peer    string    `json:"peer"`
	QPN     uint32    `json:"qpn"` // 0: none
	Path    string    `json:"path"`
	Reads   int       `json:"reads"`        // Reads we may have open (ORD)
	Serves  int       `json:"serves_reads"` // Reads we serve (IRD)
	Tries   int       `json:"tries"`        // repetitions of the handshake's last message
	Work
	Wire *Wire `json:"wire,omitempty"`
}

// Listener is an rdma_cm id that listens.
type Listener struct {
	Owner
	Handle  uint32    `json:"handle"`
	Device  string    `json:"device"` // "" for all
	Created time.Time `json:"created"`
	Local   string    `json:"local"`
	Backlog int       `json:"backlog"`
	Pending int       `json:"pending"` // requests not answered yet
}
