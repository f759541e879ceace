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

// SRQOptions has the sizes of a shared receive queue (ibv_create_srq(3)). Zero values mean defaults.
type SRQOptions struct {
	RecvWR  int // outstanding receives; default 128
	RecvSGE int // elements of a receive; default 4
	// Limit causes one EventSRQLimitReached when fewer receives than this are posted; 0: no event.
	Limit int
	// XRC puts the queue into an XRC domain: messages sent to its number through any queue pair of the domain
	// arrive here, and complete on CQ, which is required then.
	XRC *XRCDomain
	CQ  *CQ
}

// SRQ is a shared receive queue (ibv_create_srq(3)). Queue pairs with QPOptions.SRQ take receives from it,
// and complete them on their own receive completion queues; Completion.QPN names the queue pair. While it is
// empty, messages wait in their queue pairs.
type SRQ struct {
	pd     *PD
	handle uint32
	number uint32 // of a queue in an XRC domain

	maxSGE int
	maxWR  atomic.Int64 // receives; changed under mu, and read without it, because Resize holds mu while urdmad answers

	mu     sync.Mutex // guards the fields below
	closed bool
	ring   ring.ClientSRQ
	mem    []byte
}

// SRQAttr are a shared receive queue's attributes, struct ibv_srq_attr.
type SRQAttr struct {
	RecvWR, RecvSGE int
	Limit           int // also 0 after its event
}

// CreateSRQ makes a shared receive queue; the keys in its receives belong to this domain.
func (p *PD) CreateSRQ(o SRQOptions) (*SRQ, error) {
	o.RecvWR, o.RecvSGE = orDefault(o.RecvWR, 128), orDefault(o.RecvSGE, 4)
	for _, v := range []int{o.RecvWR, o.RecvSGE, o.Limit} {
		if v < 0 || v > 1<<20 {
			return nil, fmt.Errorf("verbs: shared receive queue with a limit of %d: %w", v, syscall.EINVAL)
		}
	}
	c := p.ctx.client
	req := abi.CreateSRQRequest{PD: p.handle, MaxWR: uint32(o.RecvWR), MaxSGE: uint32(o.RecvSGE),
		SRQLimit: uint32(o.Limit)}
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
		_ = c.callHandle(abi.DestroySRQ, resp.Handle) // the first error is the one to return
		return nil, err
	}
	s.ring.Init(s.mem, &resp)
	c.srqs.Add(s.handle, s)
	return s, nil
}

// name sets the request's XRC domain and completion queue, if the options have them.
func (o *SRQOptions) name(c *Client, req *abi.CreateSRQRequest) error {
	if o.XRC == nil && o.CQ == nil {
		return nil
	}
	if o.XRC == nil || o.CQ == nil || o.CQ.ctx.client != c || o.XRC.ctx.client != c {
		return fmt.Errorf("verbs: shared receive queue with an XRC domain or a completion queue of ours, expected both: %w",
			syscall.EINVAL)
	}
	req.SRQType, req.XRCD, req.CQ = abi.SRQTypeXRC, o.XRC.handle, o.CQ.handle
	return nil
}

// PostRecv posts one receive (ibv_post_srq_recv(3)). Receives are taken in order, one for each message, and
// complete in the order in which the messages end. ErrQueueFull: all slots are in use; a slot is free once
// its receive was taken, even if the completion was not polled.
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
	s.ring.Publish() // no doorbell: while a message waits for a receive, urdmad looks again by itself
	return nil
}

// SetLimit causes one EventSRQLimitReached when fewer receives than n are posted; 0 removes the limit
// (ibv_modify_srq(3)).
func (s *SRQ) SetLimit(n int) error {
	if most := s.maxWR.Load(); n < 0 || int64(n) > most {
		return fmt.Errorf("verbs: limit of %d receives of %d: %w", n, most, syscall.EINVAL)
	}
	req := abi.ModifySRQRequest{Handle: s.handle, Mask: abi.SRQMaskLimit, SRQLimit: uint32(n)}
	_, err := call[abi.Header](s.pd.ctx.client, abi.ModifySRQ, &req, nil, -1, 0)
	return err
}

// Resize changes the number of receives that the queue holds (ibv_modify_srq(3) with IBV_SRQ_MAX_WR); posted
// receives and the limit are kept. EINVAL: the number is less than the posted receives or the limit, or more
// than the device allows. PostRecv may be called concurrently; it waits until Resize returns.
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
	if err != nil { // urdmad has moved the queue, so the old ring is no longer used
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

// SRQN returns the number by which peers name a queue in an XRC domain (ibv_get_srq_num(3)); 0 for other
// queues.
func (s *SRQ) SRQN() uint32 { return s.number }

// PD returns the domain of the memory in the receives.
func (s *SRQ) PD() *PD { return s.pd }

// Close destroys the queue; EBUSY while queue pairs use it (ibv_destroy_srq(3)).
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
