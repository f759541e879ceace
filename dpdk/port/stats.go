package port

import "sync/atomic"

// Stats are a port's counters since it was opened.
type Stats struct {
	RxPackets uint64 `counter:"rx_packets"` // frames received
	TxPackets uint64 `counter:"tx_packets"` // frames sent
	RxBytes   uint64 `counter:"rx_bytes"`   // including Ethernet headers
	TxBytes   uint64 `counter:"tx_bytes"`
	RxDropped uint64 `counter:"rx_dropped"` // frames lost because the receive ring was full
	TxDropped uint64 `counter:"tx_dropped"` // frames given to Tx while the link was down
	RxErrors  uint64 `counter:"rx_errors"`  // malformed frames or descriptors from the other side
	// frames lost because no buffer was free, and calls of Alloc that found none
	NoBuffer  uint64 `counter:"no_buffer"`
	LinkUps   uint64 `counter:"link_ups"`   // times the link came up
	LinkDowns uint64 `counter:"link_downs"` // times the link went down after it was up
}

// Counters is the writable form of Stats: drivers add to it from a queue's worker thread, or from their
// background goroutines; Snapshot may be called from anywhere.
type Counters struct {
	RxPackets, TxPackets atomic.Uint64
	RxBytes, TxBytes     atomic.Uint64
	RxDropped, TxDropped atomic.Uint64
	RxErrors, NoBuffer   atomic.Uint64
	LinkUps, LinkDowns   atomic.Uint64
}

// Snapshot reads each counter once; they are not read at the same instant.
func (c *Counters) Snapshot() Stats {
	return Stats{
		RxPackets: c.RxPackets.Load(), TxPackets: c.TxPackets.Load(),
		RxBytes: c.RxBytes.Load(), TxBytes: c.TxBytes.Load(),
		RxDropped: c.RxDropped.Load(), TxDropped: c.TxDropped.Load(),
		RxErrors: c.RxErrors.Load(), NoBuffer: c.NoBuffer.Load(),
		LinkUps: c.LinkUps.Load(), LinkDowns: c.LinkDowns.Load(),
	}
}

// Add adds two sets of counters: of a port's queues, and of the port itself.
func (s Stats) Add(o Stats) Stats {
	return Stats{
		RxPackets: s.RxPackets + o.RxPackets, TxPackets: s.TxPackets + o.TxPackets,
		RxBytes: s.RxBytes + o.RxBytes, TxBytes: s.TxBytes + o.TxBytes,
		RxDropped: s.RxDropped + o.RxDropped, TxDropped: s.TxDropped + o.TxDropped,
		RxErrors: s.RxErrors + o.RxErrors, NoBuffer: s.NoBuffer + o.NoBuffer,
		LinkUps: s.LinkUps + o.LinkUps, LinkDowns: s.LinkDowns + o.LinkDowns,
	}
}
