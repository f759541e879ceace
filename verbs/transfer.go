package verbs

import "context"

// transferID marks the work requests of Send, Write and Read; the other bits of the ID count them.
const transferID = 1 << 63

// Send sends one message and waits until the peer has it or the connection fails; a datagram only until it is
// sent. A connection carries out one Send, Write or Read at a time, others wait; to have several outstanding,
// post to the queue pair. If ctx ends, the transfer continues: its memory must not be touched before the
// connection is closed.
func (conn *Conn) Send(ctx context.Context, sge ...SGE) error {
	return conn.transfer(ctx, &SendWR{Op: OpSend, SGE: sge})
}

// SendBytes sends up to MaxInline bytes, which need not be in registered memory; see Send.
func (conn *Conn) SendBytes(ctx context.Context, b []byte) error {
	if b == nil {
		b = []byte{}
	}
	return conn.transfer(ctx, &SendWR{Op: OpSend, Inline: b})
}

// Write writes to the peer's memory and waits, as Send does, until the data is there.
func (conn *Conn) Write(ctx context.Context, to Remote, sge ...SGE) error {
	return conn.transfer(ctx, &SendWR{Op: OpWrite, Remote: to, SGE: sge})
}

// Read reads the peer's memory and waits, as Send does, until the data is here.
func (conn *Conn) Read(ctx context.Context, from Remote, sge ...SGE) error {
	return conn.transfer(ctx, &SendWR{Op: OpRead, Remote: from, SGE: sge})
}

// FetchAdd adds to 8 bytes of the peer and waits, as Send does, until the old value is in the 8 bytes of
// found.
func (conn *Conn) FetchAdd(ctx context.Context, at Remote, add uint64, found SGE) error {
	return conn.transfer(ctx, &SendWR{Op: OpFetchAdd, Remote: at, Add: add, SGE: []SGE{found}})
}

// CmpSwap replaces 8 bytes of the peer if they equal compare, and waits, as Send does, until the old value is
// in the 8 bytes of found.
func (conn *Conn) CmpSwap(ctx context.Context, at Remote, compare, swap uint64, found SGE) error {
	return conn.transfer(ctx, &SendWR{Op: OpCmpSwap, Remote: at, Compare: compare, Swap: swap, SGE: []SGE{found}})
}

func (conn *Conn) transfer(ctx context.Context, wr *SendWR) error {
	if !conn.own.sendCQ {
		return ErrSharedQueue
	}
	select {
	case conn.turn <- struct{}{}:
		defer func() { <-conn.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if conn.kind == UD {
		wr.To = conn.peer
	}
	conn.serial++
	wr.ID, wr.Flags = transferID|conn.serial, Signaled
	if err := conn.PostSend(wr); err != nil {
		return err
	}
	for {
		var one [1]Completion
		if _, err := conn.sendCQ.Wait(ctx, one[:]); err != nil {
			return err
		}
		if one[0].ID == wr.ID { // other IDs are transfers whose callers no longer wait
			return one[0].Err()
		}
	}
}

// Recv waits for the next posted receive to complete: Completion.ID names it, ByteLen is the length of the
// message. A datagram has GRHLen bytes in front, see ParseGRH and Completion.Sender. The error is the
// completion's, or the reason why the connection ended if no receive is posted.
func (conn *Conn) Recv(ctx context.Context) (Completion, error) {
	if !conn.own.recvCQ {
		return Completion{}, ErrSharedQueue
	}
	var one [1]Completion
	if _, err := conn.recvCQ.wait(ctx, one[:], conn.id.Done(), conn.nothingPosted); err != nil {
		return Completion{}, err
	}
	return one[0], one[0].Err()
}

// nothingPosted returns the error of a connection that has ended without a posted receive, which would have
// been flushed.
func (conn *Conn) nothingPosted() error {
	conn.recvMutex.Lock()
	defer conn.recvMutex.Unlock()
	if conn.QP.closed {
		return ErrClosed
	}
	if conn.ring.RQ.Left() > 0 {
		return nil
	}
	return conn.id.Why()
}
