package verbs

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
	"urdma/verbs/session"
)

// SRQOptions says what a shared receive queue is to hold
// (ibv_create_srq(3)). Zero values take defaults.
type SRQOptions struct {
	RecvWR  int // receives at a time; default 128
	RecvSGE int // elements of a receive; default 4
	// Limit raises EventSRQLimitReached once, when fewer receives than this are
	// posted; 0 does not.
	Limit int
	// XRC makes it one of an XRC domain: what peers send to its number by whatever queue
	// pair of the domain arrives here, and completes on CQ, which it needs then.
	XRC *XRCDomain
	CQ  *CQ
}

// SRQ is a shared receive queue (ibv_create_srq(3)): QPOptions.SRQ has queue
// pairs draw from it, each for its own messages, and each completes what it took
// on its own receive completion queue; Completion.QPN tells whose it is. While it
// is empty, messages wait, each queue pair's for itself.
type SRQ struct {
	pd     *PD
	handle uint32
	number uint32 // of an XRC domain's

	maxSGE int
	maxWR  atomic.Int64 // receives; changes under mu, and is read without it, which Resize holds while urdmad answers

	mu     sync.Mutex // guards what follows
	closed bool
	ring   ring.ClientSRQ
	mem    []byte
}

// SRQAttr are a shared receive queue's attributes, struct ibv_srq_attr.
type SRQAttr struct {
	RecvWR, RecvSGE int
	Limit           int // 0 also once its event was raised
}

// CreateSRQ makes a shared receive queue; the keys of its receives are of this
// domain.
func (p *PD) CreateSRQ(o SRQOptions) (*SRQ, error) {
	o.RecvWR, o.RecvSGE = orDefault(o.RecvWR, 128), orDefault(o.RecvSGE, 4)
	for _, v := range []int{o.RecvWR, o.RecvSGE, o.Limit} {
		if v < 0 || v > 1<<20 {
			return nil, fmt.Errorf("verbs: shared receive queue with a limit of %d: %w", v, syscall.EINVAL)
		}
	}
	c := p.ctx.client
	req := abi.CreateSRQRequest{PD: p.handle, MaxWR: uint32(o.RecvWR), MaxSGE: uint32(o.RecvSGE), SRQLimit: uint32(o.Limit)}
	if err := o.name(c, &req); err != nil {
		return nil, err
	}
	c.making.RLock()
	defer c.making.RUnlock()
	var resp abi.SRQResponse
	fds, err := call(c, abi.CreateSRQ, &req, &resp, -1, 1)
	if err != nil {
		return nil, err
	}
	s := &SRQ{pd: p, handle: resp.Handle, number: resp.SRQNum, maxSGE: int(resp.MaxSGE)}
	s.maxWR.Store(int64(resp.MaxWR))
	if s.mem, err = mapSRQ(&resp, fds[0]); err != nil {
		_ = c.callHandle(abi.DestroySRQ, resp.Handle) // the error that counts is the first
		return nil, err
	}
	s.ring.Init(s.mem, &resp)
	c.srqs.Add(s.handle, s)
	return s, nil
}

// name makes the queue that a request is for one of an XRC domain, if it is to be.
func (o *SRQOptions) name(c *Client, req *abi.CreateSRQRequest) error {
	if o.XRC == nil && o.CQ == nil {
		return nil
	}
	if o.XRC == nil || o.CQ == nil || o.CQ.ctx.client != c || o.XRC.ctx.client != c {
		return fmt.Errorf("verbs: shared receive queue with an XRC domain or a completion queue of ours, expected both: %w", syscall.EINVAL)
	}
	req.SRQType, req.XRCD, req.CQ = abi.SRQTypeXRC, o.XRC.handle, o.CQ.handle
	return nil
}

// PostRecv posts one receive (ibv_post_srq_recv(3)). Receives are taken in order,
// one a message, and complete in the order in which the messages end.
// ErrQueueFull: as many wait as the queue holds; one that was taken counts no
// more, though its completion was not polled.
func (s *SRQ) PostRecv(wr *RecvWR) error {
	if s.pd.ctx.client.dead() {
		return s.pd.ctx.client.endError()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return ErrClosed
	case len(wr.SGE) > s.maxSGE:
		return ErrWorkRequest
	case !s.ring.Write(wr.ID, wr.SGE):
		return ErrQueueFull
	}
	s.ring.Publish() // no doorbell: a message that waits for a receive looks again by itself
	return nil
}

// SetLimit raises EventSRQLimitReached once, when fewer receives than n are
// posted; 0 takes the limit away (ibv_modify_srq(3)).
func (s *SRQ) SetLimit(n int) error {
	if most := s.maxWR.Load(); n < 0 || int64(n) > most {
		return fmt.Errorf("verbs: limit of %d receives of %d: %w", n, most, syscall.EINVAL)
	}
	req := abi.ModifySRQRequest{Handle: s.handle, Mask: abi.SRQMaskLimit, SRQLimit: uint32(n)}
	_, err := call[abi.Header](s.pd.ctx.client, abi.ModifySRQ, &req, nil, -1, 0)
	return err
}

// Resize changes how many receives the queue holds (ibv_modify_srq(3) with
// IBV_SRQ_MAX_WR); those that wait, and the limit, stay. EINVAL: it is less than
// what waits, or than the limit, or more than the device has. Receives may be
// posted at the same time, and wait for it to end.
func (s *SRQ) Resize(n int) error {
	c := s.pd.ctx.client
	if n < 1 || n > 1<<20 {
		return fmt.Errorf("verbs: shared receive queue of %d receives: %w", n, syscall.EINVAL)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := descriptorRoom(); err != nil {
		return err
	}
	req := abi.ModifySRQRequest{Handle: s.handle, MaxWR: uint32(n)}
	var resp abi.SRQResponse
	fds, err := call(c, abi.ResizeSRQ, &req, &resp, -1, 1)
	if err != nil {
		return err
	}
	mem, err := mapSRQ(&resp, fds[0])
	if err != nil { // urdmad has moved the queue to where we can't follow
		c.session.Lose()
		return err
	}
	s.ring.Move(mem, &resp)
	session.Unmap(s.mem)
	s.mem = mem
	s.maxWR.Store(int64(resp.MaxWR))
	return nil
}

// Query reads the attributes (ibv_query_srq(3)).
func (s *SRQ) Query() (SRQAttr, error) {
	var resp abi.QuerySRQResponse
	if _, err := call(s.pd.ctx.client, abi.QuerySRQ, &abi.HandleMessage{Handle: s.handle}, &resp, -1, 0); err != nil {
		return SRQAttr{}, err
	}
	return SRQAttr{RecvWR: int(resp.MaxWR), RecvSGE: int(resp.MaxSGE), Limit: int(resp.SRQLimit)}, nil
}

// SRQN is the number by which peers name a queue of an XRC domain
// (ibv_get_srq_num(3)); 0 of any other.
func (s *SRQ) SRQN() uint32 { return s.number }

// PD is the domain whose memory the receives name.
func (s *SRQ) PD() *PD { return s.pd }

// Close destroys the queue; EBUSY while queue pairs draw from it
// (ibv_destroy_srq(3)).
func (s *SRQ) Close() error {
	c := s.pd.ctx.client
	if err := c.destroy(abi.DestroySRQ, s.handle); err != nil {
		return err
	}
	c.srqs.Remove(s.handle)
	s.release()
	return nil
}

func (s *SRQ) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		session.Unmap(s.mem)
	}
}
