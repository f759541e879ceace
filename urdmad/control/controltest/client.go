// Package controltest supports tests of package control and of attached features. It has a urdmad
// without its main program on a loopback port, a client that can send any request, and a random
// client. The random client makes queue pairs of every type, connects them by ibv_modify_qp and
// by rdma_cm, posts to them and destroys them at any time. Its messages are always well-formed,
// and their content is often valid.
package controltest

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
	"urdma/verbs/session"
)

// Config configures a Client.
type Config struct {
	Rand    *rand.Rand
	Socket  string       // control socket
	Own     netip.Addr   // address of its first device
	Peers   []netip.Addr // addresses to connect to; may include Own
	Domain  *os.File     // file of an XRC domain, which clients may share
	Numbers *[]uint32    // numbers of the newest queue pairs; clients may share the list
}

// firstPort and ports are where clients listen.
const (
	// firstPort and ports are the port numbers on which clients listen.
	firstPort = 7200
	ports     = 2
)

const allAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic

// Client is a random client.
type Client struct {
	Config
	s           *session.Session
	g           *session.Greeting
	bells       ring.ClientBells
	maps        [][]byte // of queues
	device, pd  uint32
	cqs         []uint32
	completions []*ring.ClientCQ
	xrcd, srqn  uint32
	receives    ring.ClientSRQ // of the XRC domain
	channel     uint32
	events      int // the channel's socket
	pairs       []*pair
	ids         []uint32
	children    []uint32 // of ids: requests that were not answered
}

// pair is a queue pair.
type pair struct {
	kind, handle, qpn, state uint32
	mem                      []byte // nil of type XRC_RECV
	ring                     ring.ClientQP
	bell                     int
}

var types = []uint32{abi.QPTypeRC, abi.QPTypeUC, abi.QPTypeUD, abi.QPTypeXRCSend, abi.QPTypeXRCRecv}

// demand sends a request whose answer has up to fds descriptors. A refusal is no error; the end
// of the session is.
func demand[Resp, Req any](c *Client, kind abi.Type, req Req, fds int) (out Resp, got []int, err error) {
	got, err = session.Call(context.Background(), c.s, kind, &req, &out, -1, fds)
	return out, got, err
}

// handle sends a request about a handle.
func (c *Client) handle(kind abi.Type, handle uint32) error {
	_, _, err := demand[abi.Header](c, kind, abi.HandleMessage{Handle: handle}, 0)
	return err
}

// New returns a client with all objects except queue pairs and ids.
func New(config Config) (*Client, error) {
	ctx := context.Background()
	s, err := session.Dial(ctx, []string{config.Socket}, func() {})
	if err != nil {
		return nil, err
	}
	c := &Client{Config: config, s: s, events: -1}
	if c.g, err = s.Greet(ctx); err != nil {
		return nil, err
	}
	c.bells.Init(c.g.Bells, 0)
	return c, errors.Join(c.openDevice(), c.makeQueues(), c.openDomain(), c.makeChannel())
}

func (c *Client) openDevice() error {
	device, fds, err := demand[abi.HandleMessage](c, abi.OpenDevice, abi.OpenDeviceRequest{}, 1)
	session.CloseAll(fds)
	if err != nil {
		return err
	}
	c.device = device.Handle
	pd, _, err := demand[abi.HandleMessage](c, abi.AllocPD, abi.HandleMessage{Handle: c.device}, 0)
	c.pd = pd.Handle
	return err
}

func (c *Client) makeQueues() error {
	for range 2 {
		cq, fds, err := demand[abi.CQResponse](c, abi.CreateCQ,
			abi.CreateCQRequest{Context: c.device, Channel: abi.NoHandle, CQE: 64}, 1)
		if err != nil {
			return err
		}
		mem, err := c.mapped(fds[0], cq.Bytes)
		if err != nil {
			return err
		}
		polled := new(ring.ClientCQ)
		polled.Init(mem, &cq)
		c.cqs, c.completions = append(c.cqs, cq.Handle), append(c.completions, polled)
	}
	return nil
}

// openDomain opens the XRC domain and makes a shared receive queue in it.
func (c *Client) openDomain() error {
	var xrcd abi.HandleMessage
	if _, err := session.Call(context.Background(), c.s, abi.OpenXRCD,
		&abi.OpenXRCDRequest{Context: c.device, OFlags: unix.O_CREAT}, &xrcd,
		int(c.Domain.Fd()), 0); err != nil {
		return err
	}
	c.xrcd = xrcd.Handle
	srq, fds, err := demand[abi.SRQResponse](c, abi.CreateSRQ,
		abi.CreateSRQRequest{PD: c.pd, MaxWR: 16, SRQType: abi.SRQTypeXRC, XRCD: c.xrcd, CQ: c.cqs[0]}, 1)
	if err != nil {
		return err
	}
	mem, err := c.mapped(fds[0], srq.Bytes)
	if err != nil {
		return err
	}
	c.receives.Init(mem, &srq)
	c.srqn = srq.SRQNum
	return nil
}

func (c *Client) makeChannel() error {
	channel, fds, err := demand[abi.HandleMessage](c, abi.CMCreateChannel, abi.Header{}, 1)
	if err == nil {
		c.channel, c.events = channel.Handle, fds[0]
	}
	return err
}

// mapped maps memory of a queue until the client leaves.
func (c *Client) mapped(fd int, bytes uint32) ([]byte, error) {
	defer unix.Close(fd)
	mem, err := unix.Mmap(fd, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		c.maps = append(c.maps, mem)
	}
	return mem, err
}

// Leave ends the client without destroying its objects.
func (c *Client) Leave() {
	c.s.Close()
	c.s.Wait()
	c.g.Release()
	unix.Close(c.events)
	for _, mem := range c.maps {
		_ = unix.Munmap(mem)
	}
}

// some returns a random element of a list, or 0.
func some[T any](r *rand.Rand, list []T) (v T) {
	if len(list) > 0 {
		v = list[r.IntN(len(list))]
	}
	return v
}

func (c *Client) create() {
	kind := some(c.Rand, types)
	req := abi.CreateQPRequest{PD: c.pd, QPType: kind, SendCQ: some(c.Rand, c.cqs), RecvCQ: some(c.Rand, c.cqs),
		SRQ: abi.NoHandle, XRCD: abi.NoHandle,
		Cap: abi.QPCap{MaxSendWR: uint32(4 * c.Rand.IntN(2)), MaxRecvWR: uint32(4 * c.Rand.IntN(2)), MaxInline: 64}}
	wantFDs := 1
	switch kind {
	case abi.QPTypeXRCSend:
		req.RecvCQ, req.Cap.MaxRecvWR = abi.NoHandle, 0
	case abi.QPTypeXRCRecv:
		if c.Rand.IntN(2) == 0 && len(*c.Numbers) > 0 {
			c.open(some(c.Rand, *c.Numbers))
			return
		}
		req, wantFDs = abi.CreateQPRequest{QPType: kind, PD: abi.NoHandle, SendCQ: abi.NoHandle, RecvCQ: abi.NoHandle,
			SRQ: abi.NoHandle, XRCD: c.xrcd}, 0
	}
	resp, fds, err := demand[abi.QPResponse](c, abi.CreateQP, req, wantFDs)
	if err != nil {
		return
	}
	p := &pair{kind: kind, handle: resp.Handle, qpn: resp.QPN, bell: int(resp.Doorbell)}
	if wantFDs > 0 {
		if p.mem, err = c.mapped(fds[0], resp.Bytes); err != nil {
			return
		}
		p.ring.Init(p.mem, &resp, false)
	}
	c.pairs, *c.Numbers = append(c.pairs, p), append(*c.Numbers, p.qpn)
}

func (c *Client) open(qpn uint32) {
	if h, _, err := demand[abi.HandleMessage](c, abi.OpenQP, abi.OpenQPRequest{XRCD: c.xrcd, QPNum: qpn}, 0); err == nil {
		c.pairs = append(c.pairs, &pair{kind: abi.QPTypeXRCRecv, handle: h.Handle, qpn: qpn})
	}
}

// partner returns the queue pair that p uses as its peer, mostly one that also uses p.
func (c *Client) partner(p *pair) uint32 {
	if at := slices.Index(*c.Numbers, p.qpn); c.Rand.IntN(4) > 0 && at^1 < len(*c.Numbers) && at >= 0 {
		return (*c.Numbers)[at^1]
	}
	return some(c.Rand, *c.Numbers)
}

// modify moves the queue pair to a random state with the attributes that its type requires, or
// changes attributes that may change in its state.
func (c *Client) modify(p *pair) {
	mask, a := uint32(abi.QPMaskState), abi.QPAttr{PortNum: 1, QPAccessFlags: allAccess, PathMTU: 3, IsGlobal: 1,
		DGID: some(c.Rand, c.Peers).As16(), AHPortNum: 1, DestQPNum: c.partner(p), MaxDestRdAtomic: 1, MaxRdAtomic: 1,
		Timeout: 10, RetryCnt: 1, RNRRetry: 1}
	ud, uc := p.kind == abi.QPTypeUD, p.kind == abi.QPTypeUC
	n := c.Rand.IntN(8)
	if c.Rand.IntN(2) == 0 {
		n = int(2 * (p.state % abi.QPSSQD)) // the next state on the way to RTS
	}
	switch n {
	case 0, 1:
		a.QPState = abi.QPSInit
		if mask |= abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskAccessFlags; ud {
			mask = abi.QPMaskState | abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskQKey
		}
	case 2, 3:
		a.QPState = abi.QPSRTR
		switch {
		case uc:
			mask |= abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN
		case !ud:
			mask |= abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN | abi.QPMaskMaxDestRdAtomic |
				abi.QPMaskMinRNRTimer
		}
	case 4, 5:
		a.QPState = abi.QPSRTS
		if mask |= abi.QPMaskSQPSN; !ud && !uc {
			mask |= abi.QPMaskMaxQPRdAtomic | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry
		}
	case 6:
		a.QPState = some(c.Rand, []uint32{abi.QPSSQD, abi.QPSErr, abi.QPSReset})
	case 7:
		if mask = abi.QPMaskAccessFlags; ud {
			mask = abi.QPMaskQKey
		}
	}
	now, _, err := demand[abi.QueryQPResponse](c, abi.ModifyQP, abi.ModifyQPRequest{Handle: p.handle, Mask: mask, Attr: a},
		0)
	if err != nil {
		return
	}
	p.state = now.Attr.QPState
	if mask&abi.QPMaskState != 0 && a.QPState == abi.QPSReset && p.mem != nil {
		p.ring.Reset()
	}
}

// post posts work that needs no memory: short sends to any peer, and receives of 0 bytes.
func (c *Client) post(p *pair) {
	if c.receives.Write(1, nil) {
		c.receives.Publish()
	}
	for _, q := range c.completions {
		var out [64]abi.CQE
		for _, e := range out[:q.Poll(out[:])] {
			for _, p := range c.pairs {
				if p.qpn == e.QPNum && p.mem != nil {
					p.ring.Polled(&e)
				}
			}
		}
	}
	if p.mem == nil {
		return
	}
	sqe := abi.SQE{WRID: 1, Opcode: some(c.Rand,
		[]uint32{abi.WRSend, abi.WRRDMAWrite, abi.WRSendWithImm, abi.WRSendWithInv}), Flags: abi.SendSignaled,
		RemoteSRQN: c.srqn, RKey: c.Rand.Uint32()}
	if p.kind == abi.QPTypeUD {
		sqe.RemoteAddr = uint64(some(c.Rand, *c.Numbers))
		to := some(c.Rand, c.Peers).As16()
		sqe.CompareAdd, sqe.Swap = binary.NativeEndian.Uint64(to[:]), binary.NativeEndian.Uint64(to[8:])
	}
	if p.ring.SQ.WriteInline(&sqe, make([]byte, c.Rand.IntN(2))) {
		p.ring.SQ.Publish()
	}
	if p.ring.RQ.Write(2, nil) {
		p.ring.RQ.Publish()
	}
	if c.bells.Ring(p.bell) {
		c.g.Kick(0)
	}
}

func (c *Client) destroy(i int) {
	p := c.pairs[i]
	if c.handle(abi.DestroyQP, p.handle) == nil {
		c.pairs = append(c.pairs[:i], c.pairs[i+1:]...)
	}
}

// at is a socket address; without a zone it has no error.
func at(ip netip.Addr, port uint16) abi.Addr {
	a, _ := abi.AddrFrom(netip.AddrPortFrom(ip, port))
	return a
}

// connect does one random step with ids: listen, connect, accept with any queue pair, or
// disconnect.
func (c *Client) connect() {
	port := uint16(firstPort + c.Rand.IntN(ports))
	id, param := some(c.Rand, c.ids), c.param()
	switch c.Rand.IntN(10) {
	case 0, 1:
		h, _, err := demand[abi.HandleMessage](c, abi.CMCreateID, abi.CMCreateIDRequest{Channel: c.channel,
			PS: some(c.Rand, []uint32{abi.PSTCP, abi.PSTCP, abi.PSTCP, abi.PSIB, abi.PSUDP})}, 0)
		if err == nil {
			c.ids = append(c.ids, h.Handle)
		}
	case 2:
		_, _, _ = demand[abi.CMBound](c, abi.CMBind, abi.CMBindRequest{ID: id, Addr: at(c.Own, port)}, 0)
		_, _, _ = demand[abi.CMBound](c, abi.CMListen, abi.CMValueRequest{ID: id, Value: 4}, 0)
	case 3, 4:
		_, _, _ = demand[abi.CMBound](c, abi.CMResolveAddr,
			abi.CMResolveAddrRequest{ID: id, TimeoutMS: 1000, Dst: at(some(c.Rand, c.Peers), port)}, 0)
	case 5, 6:
		_, _, _ = demand[abi.Header](c, abi.CMConnect, abi.CMConnRequest{ID: id, Param: param}, 0)
	case 7:
		_ = c.handle(abi.CMDisconnect, id)
	case 8:
		if n := len(c.ids); n > 8 {
			_ = c.handle(abi.CMDestroyID, c.ids[0])
			c.ids = c.ids[1:]
		}
	case 9:
		_, _, _ = demand[abi.Header](c, abi.CMReject, abi.CMConnRequest{ID: some(c.Rand, c.children), Param: param}, 0)
	}
	c.hear()
	if n := len(c.children); n > 0 {
		_, _, _ = demand[abi.Header](c, abi.CMAccept, abi.CMConnRequest{ID: c.children[n-1], Param: c.param()}, 0)
		if c.Rand.IntN(8) == 0 {
			c.children = c.children[:n-1]
		}
	}
}

// param returns parameters that name any queue pair.
func (c *Client) param() abi.CMParam {
	param := abi.CMParam{QP: abi.NoHandle, ResponderResources: 1, InitiatorDepth: 1, RNRRetryCount: 7}
	if p := some(c.Rand, c.pairs); p != nil {
		param.QP, param.QPNum = p.handle, p.qpn
	}
	return param
}

// hear reads the events that have come, and takes the next step where they require it.
func (c *Client) hear() {
	b := make([]byte, abi.MaxMessage)
	for {
		n, _, err := unix.Recvfrom(c.events, b, unix.MSG_DONTWAIT)
		if err != nil || n == 0 {
			return
		}
		switch ev, _ := abi.Decode[abi.CMEvent](b[:n]); ev.Event {
		case abi.CMAddrResolved:
			_, _, _ = demand[abi.Header](c, abi.CMResolveRoute, abi.CMValueRequest{ID: ev.ID, Value: 1000}, 0)
		case abi.CMRouteResolved:
			_, _, _ = demand[abi.Header](c, abi.CMConnect, abi.CMConnRequest{ID: ev.ID, Param: c.param()}, 0)
		case abi.CMConnectRequest:
			c.ids, c.children = append(c.ids, ev.Child), append(c.children, ev.Child)
		}
	}
}

// Step does one random thing. An error means that urdmad has ended the session.
func (c *Client) Step() error {
	p := some(c.Rand, c.pairs)
	switch n := c.Rand.IntN(16); {
	case p == nil || n == 0 && len(c.pairs) < 12:
		c.create()
	case n == 1:
		c.destroy(c.Rand.IntN(len(c.pairs)))
	case n < 6:
		c.modify(p)
	case n < 10:
		c.post(p)
	default:
		c.connect()
	}
	if c.s.Dead() {
		return c.s.EndError()
	}
	return nil
}
