package verbs

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// QPConfig says what a queue pair can hold. Zeros take the defaults named.
type QPConfig struct {
	MaxSend    int // send requests posted and not completed: 64
	MaxRecv    int // receive requests: 64
	MaxSendSGE int // elements of a send request's list: 4
	MaxRecvSGE int // of a receive's: 4
	MaxInline  int // bytes of inline data: 64
}

func (c *QPConfig) abi() abi.QPCap {
	or := func(n, def int) uint32 {
		if n <= 0 {
			return uint32(def)
		}
		return uint32(n)
	}
	return abi.QPCap{MaxSendWR: or(c.MaxSend, 64), MaxRecvWR: or(c.MaxRecv, 64), MaxSendSGE: or(c.MaxSendSGE, 4),
		MaxRecvSGE: or(c.MaxRecvSGE, 4), MaxInline: or(c.MaxInline, 64)}
}

// QP is a reliable connected queue pair.
type QP struct {
	Num    uint32 // its number
	c      *Client
	handle uint32
	worker int
	bell   int
	mem    []byte
	sendCQ *CQ
	recvCQ *CQ

	send, recv sync.Mutex
	ring       ring.ClientQP
	closed     bool // both locks held to write
	sends      outstanding
	recvs      outstanding
}

// NewQP makes a queue pair that completes on the two queues, which may be one.
// Dial and Request.Accept make theirs by themselves.
func (p *PD) NewQP(send, recv *CQ, cfg QPConfig) (*QP, error) {
	if send == nil || recv == nil {
		return nil, fmt.Errorf("%w: a queue pair needs completion queues", ErrRequest)
	}
	c := p.dev.c
	req := abi.CreateQPRequest{PD: p.handle, QPType: abi.QPTypeRC, SendCQ: send.handle, RecvCQ: recv.handle, Cap: cfg.abi()}
	var resp abi.QPResponse
	fds, err := call(c, abi.CreateQP, &req, &resp)
	if err != nil {
		return nil, fmt.Errorf("verbs: create queue pair: %w", err)
	}
	fd, err := one("create queue pair", fds)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) //nolint:errcheck // mapped or not, it is done with
	if int(resp.Worker) >= len(c.bells) || resp.Doorbell >= abi.NumDoorbells {
		return nil, fmt.Errorf("verbs: create queue pair: doorbell %d of worker %d", resp.Doorbell, resp.Worker)
	}
	q := &QP{Num: resp.QPN, c: c, handle: resp.Handle, worker: int(resp.Worker), bell: int(resp.Doorbell),
		sendCQ: send, recvCQ: recv}
	if q.mem, err = mapShared(fd, int(resp.Bytes)); err != nil {
		return nil, err
	}
	q.ring.Init(q.mem, &resp)
	q.sends.init(max(resp.Cap.MaxSendWR, 1), resp.SQEntries)
	q.recvs.init(max(resp.Cap.MaxRecvWR, 1), resp.RQEntries)
	send.attend(q)
	recv.attend(q)
	return q, nil
}

// Handle is what asynchronous events name the queue pair by.
func (q *QP) Handle() uint32 { return q.handle }

// Close destroys the queue pair, and its connection if there is one. Its
// requests that have not completed never do; completions of others stay in the
// queue.
func (q *QP) Close() error {
	q.send.Lock()
	defer q.send.Unlock()
	q.recv.Lock()
	defer q.recv.Unlock()
	if q.closed {
		return ErrClosed
	}
	if err := release(q.c, abi.DestroyQP, q.handle); err != nil {
		return fmt.Errorf("verbs: destroy queue pair: %w", err)
	}
	q.closed = true
	q.sendCQ.leave(q)
	q.recvCQ.leave(q)
	_ = unix.Munmap(q.mem) // fails only for what is not a mapping
	return nil
}
