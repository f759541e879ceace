// Package reliable is the reliability core of TRP, the shim that carries DDP
// segments over UDP: sequence numbers, acknowledgements, retransmission and
// congestion control of one connection, in both directions.
//
// It owns no clock, socket, goroutine, buffer or packet. Its caller, package trp,
// tells it what happened and when, and asks what may go now:
//
//	on a packet:   OnAck or OnSack with its header. For a segment, Judge says what
//	               OnData would do with it; one that cannot be taken is not passed to
//	               OnData, so that the peer sends it again. After Deliver, loop over
//	               NextHeld. OnAckRequested is for a packet without a segment that
//	               has the AR flag.
//	to transmit:   Retransmit until !ok, CanSend and Send for new segments, then
//	               ProbeDue, and last AckDue, so that an acknowledgement can ride on
//	               what was just sent.
//	when due:      Tick. Deadline says when.
//
// Every packet that leaves takes its header from Header; a data packet asks
// WantAR after Send or Retransmit; a SACK packet adds SackRuns. Received
// packets must be processed before Tick of the same turn: a process that was
// descheduled finds the acknowledgements that arrived meanwhile in its queue,
// and must not take its own absence for a loss.
//
// Segments are named by their PSN and by a token of the caller's, from which
// it builds a segment again that must be resent; nothing is stored here. A held
// segment is never given back: what SackRuns has reported stays received
// (unlike RFC 2018, which allows reneging), though a sender here survives it.
//
// A Conn is used by one goroutine. It allocates in Init, and where more is
// outstanding than ever before; what is given back to Rings is used
// again. All times are nanoseconds of one monotonic clock.
//
// # Where things are
//
//	conn.go        a connection: its parts in the files below
//	config.go      what a connection is told when it begins, and defaults
//	send.go        new segments, what may go
//	retransmit.go  what must go again
//	rings.go       room for the records of what is outstanding
//	arrive.go      acknowledgements from the peer
//	loss.go        which segments count as lost (RFC 8985, RFC 9002)
//	timer.go       tail probe, retransmission timeout, death (RFC 6298)
//	rtt.go         round-trip time (RFC 6298, Karn)
//	congestion.go  the congestion window, by delay
//	drain.go       looking for the least round trip anew
//	losses.go      whether loss has to do with the queue
//	recv.go        arriving segments, held segments, SACK runs
//	slots.go       which segments of a window are held
//	ack.go         when to acknowledge, delayed or at once
//	probe.go       zero window and keep-alive probes
//	stats.go       counts, and a snapshot
//
// Package reliabletest runs two connections over a simulated network.
//
// Acknowledgements are delayed only while the program here answers at once (package pingpong).
package reliable
