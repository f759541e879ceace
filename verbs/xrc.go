package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"urdma/verbs/abi"
)

// XRCDomain is an XRC domain (ibv_open_xrcd(3)). Extended reliable connections lead
// into it: a queue pair of type XRCSend says with each message for which shared
// receive queue of its peer's domain it is (SendWR.SRQN), so that one connection
// between two hosts serves all their programs.
//
// The receiving end is a queue pair of type XRCRecv, which has no queues: it belongs
// to the domain, CreateQP makes it, and programs that share the domain may hold it
// by OpenQP. Shared receive queues of the domain are made by SRQOptions.XRC; each has
// its program, its protection domain and its completion queue. A peer that Writes
// and Reads reaches the memory of all those protection domains.
type XRCDomain struct {
	ctx    *Context
	handle uint32
}

// OpenXRCDomain opens the domain of a file, which all clients share that may open
// that file, or, for nil, makes one of the caller's own. flags are those of
// ibv_open_xrcd(3): syscall.O_CREAT makes the domain of a file that has none, which
// otherwise is EAGAIN, and with syscall.O_EXCL it is EINVAL if it has one. The file
// stays the caller's, which may close it afterwards.
func (x *Context) OpenXRCDomain(file *os.File, flags int) (*XRCDomain, error) {
	if flags&^(syscall.O_CREAT|syscall.O_EXCL) != 0 {
		return nil, fmt.Errorf("verbs: XRC domain with flags 0x%x, expected O_CREAT and O_EXCL alone: %w", flags, syscall.EINVAL)
	}
	fd := -1
	if file != nil {
		if fd = int(file.Fd()); fd < 0 { // which would be a domain of the caller's own
			return nil, fmt.Errorf("verbs: XRC domain of %s: %w", file.Name(), os.ErrClosed)
		}
	}
	var resp abi.HandleMessage
	_, err := call(x.client, abi.OpenXRCD, &abi.OpenXRCDRequest{Context: x.handle, OFlags: uint32(flags)}, &resp, fd, 0)
	runtime.KeepAlive(file)
	if err != nil {
		return nil, err
	}
	return &XRCDomain{ctx: x, handle: resp.Handle}, nil
}

// Context is the device that the domain belongs to.
func (d *XRCDomain) Context() *Context { return d.ctx }

// Close closes the domain; EBUSY while a shared receive queue or a queue pair that
// was made or opened by way of it is left (ibv_close_xrcd(3)). The domain ends when the last client that
// has it open closes it.
func (d *XRCDomain) Close() error { return d.ctx.client.callHandle(abi.CloseXRCD, d.handle) }

// CreateQP makes a queue pair of type XRCRecv, which is to be connected
// (QP.ConnectNumber) with one of type XRCSend. It lives until the last client that made or
// opened it closes it.
func (d *XRCDomain) CreateQP() (*QP, error) { return d.createQP(context.Background()) }

func (d *XRCDomain) createQP(ctx context.Context) (*QP, error) {
	c := d.ctx.client
	req := abi.CreateQPRequest{QPType: uint32(XRCRecv), XRCD: d.handle, UserHandle: c.pairs.Add(1)}
	var resp abi.QPResponse
	if _, err := callContext(ctx, c, abi.CreateQP, &req, &resp, -1, 0); err != nil {
		return nil, err
	}
	q := d.target(resp.Handle, resp.QPN)
	if err := q.ready(ctx); err != nil {
		return nil, errors.Join(err, c.callHandle(abi.DestroyQP, resp.Handle))
	}
	return q, nil
}

// OpenQP holds a queue pair of the domain's that this or another program has made
// (ibv_open_qp(3)); EINVAL if there is none of this number.
func (d *XRCDomain) OpenQP(qpn uint32) (*QP, error) {
	var resp abi.HandleMessage
	if _, err := call(d.ctx.client, abi.OpenQP, &abi.OpenQPRequest{XRCD: d.handle, QPNum: qpn}, &resp, -1, 0); err != nil {
		return nil, err
	}
	q := d.target(resp.Handle, qpn)
	d.ctx.client.qps.Add(q.handle, q)
	return q, nil
}

func (d *XRCDomain) target(handle, qpn uint32) *QP {
	return &QP{kind: XRCRecv, ctx: d.ctx, handle: handle, pair: completionPair{QPN: qpn}}
}
