// Package reliable implements the reliability of TRP, which carries DDP segments over UDP: sequence
// numbers, acknowledgements, retransmission and congestion control of one connection, in both directions.
//
// It owns no clock, socket, goroutine, buffer or packet. Its caller, package trp, reports events with their
// times, and asks what may be sent now:
//
//	on a packet:   OnAck or OnSack with its header. For a segment, Judge returns a
//	               verdict. If the caller can keep the segment, it calls OnData
//	               with the verdict; otherwise the peer sends it again. After
//	               Deliver, loop over NextHeld. OnAckRequested is for a packet
//	               without a segment that has the AR flag.
//	to transmit:   Retransmit until !ok, CanSend and Send for new segments, then
//	               ProbeDue, and last AckDue, so that a segment may carry the
//	               acknowledgement.
//	when due:      Tick. Deadline returns the time.
//
// Every outgoing packet has acknowledgement and credits from Header. For a data packet, the caller calls
// WantAR after Send or Retransmit; a SACK packet adds SackRuns. Received packets must be processed before
// Tick in the same turn: after a process was suspended, the acknowledgements that arrived in the meantime
// are in its queue, and the suspension must not count as a loss.
//
// A segment is identified by its PSN and by a token of the caller, from which the caller builds the segment
// again when it must be resent; no segment is stored here. A held segment is never discarded: what SackRuns
// has reported stays received (unlike RFC 2018, which allows reneging), though a sender here tolerates
// reneging.
//
// A Conn is used by one goroutine. It allocates memory in Init, and when more segments are outstanding than
// ever before; memory returned to Rings is reused. All times are nanoseconds of one monotonic clock.
//
// # Where things are
//
//	conn.go        a connection: its parts in the files below
//	config.go      parameters and defaults
//	send.go        new segments, and how many may be sent
//	retransmit.go  segments that must be resent
//	rings.go       memory for the records of outstanding segments
//	arrive.go      acknowledgements from the peer
//	loss.go        which segments count as lost (RFC 8985, RFC 9002)
//	timer.go       tail loss probe, retransmission timeout, death timeout (RFC 6298)
//	rtt.go         round-trip time (RFC 6298, Karn)
//	congestion.go  the congestion window, controlled by delay
//	drain.go       measuring the least round trip anew
//	losses.go      whether the queue causes loss
//	recv.go        arriving segments, held segments, SACK runs
//	slots.go       which segments of a window are held
//	ack.go         when to acknowledge, delayed or at once
//	probe.go       zero window and keep-alive probes
//	stats.go       counts, and a snapshot
//
// Package reliabletest runs two connections over a simulated network.
//
// Acknowledgements are delayed only while our program answers at once (package pingpong).
package reliable
