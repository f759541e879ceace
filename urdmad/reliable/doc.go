// Package reliable is the reliability core of TRP, the shim that carries DDP
// segments over UDP: sequence numbers, acknowledgements, retransmission and
// congestion control of one connection, in both directions.
//
// It owns no clock, socket, goroutine, buffer or packet. The engine tells it
// what happened and when, and asks what may go now:
//
//	on a packet:   OnAck or OnSack with its header, then OnData if it carries a
//	               segment, or OnAckRequested if it carries none but has the AR
//	               flag. After Deliver, loop over NextHeld.
//	on a turn:     receive first, then Tick, ProbeDue, Retransmit until !ok,
//	               CanSend and Send for new segments, and last AckDue, so that
//	               an acknowledgement can ride on what was just sent.
//	to sleep:      Deadline says when to look again.
//
// Every packet that leaves takes its header from Header; a data packet asks
// WantAR after Send or Retransmit; a SACK packet adds SackRuns. Received
// packets must be processed before Tick of the same turn: a process that was
// descheduled finds the acknowledgements that arrived meanwhile in its queue,
// and must not take its own absence for a loss.
//
// Segments are named by their PSN and by a token of the engine's, from which
// it rebuilds a segment when it must be resent; nothing is stored here. A held
// segment is never given back: what SackRuns has reported stays received
// (unlike RFC 2018, which allows reneging), though a sender here survives it.
//
// A Conn is used by one goroutine. It allocates in Init, and where more is
// outstanding than ever before; what is given back to Rings is used again. All times are nanoseconds of one monotonic clock.
//
// # Where things are
//
//	send.go        new segments, retransmission, what may go
//	rings.go       room for the records of what is outstanding
//	arrive.go      acknowledgements from the peer
//	loss.go        which segments count as lost (RFC 8985, RFC 9002)
//	timer.go       tail probe, retransmission timeout, death (RFC 6298)
//	rtt.go         round-trip time (RFC 6298, Karn)
//	congestion.go  the congestion window, by delay
//	drain.go       looking for the least round trip anew
//	losses.go      whether loss has to do with the queue
//	recv.go        arriving segments, held segments, SACK runs
//	ack.go         when to acknowledge, delayed or at once
//	probe.go       zero window and keep-alive probes
package reliable
