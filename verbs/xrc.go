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

// XRCDomain is an XRC domain (ibv_open_xrcd(3)), the receiving end of extended reliable connections. A queue
// pair of type XRCSend names in each message a shared receive queue of its peer's domain (SendWR.SRQN), so
// that one connection between two hosts serves all their programs.
//
// The receiving end is a queue pair of type XRCRecv, which has no queues and belongs to the domain. CreateQP
// makes it; other programs that share the domain may keep it alive by OpenQP. Shared receive queues of the
// domain are made with SRQOptions.XRC; each has its own program, protection domain and completion queue.
// Writes and Reads of the peer reach the memory of all those protection domains.
type XRCDomain struct {
	ctx    *Context
	handle uint32
}

// OpenXRCDomain opens the domain of a file, which is shared by all clients that can open the file; for nil it
// makes a private domain. flags are as in ibv_open_xrcd(3): syscall.O_CREAT creates the domain if it does not
// exist (without it: EAGAIN); with syscall.O_EXCL too, EINVAL if it exists. The file remains the caller's,
// which may close it afterwards.
func (x *Context) OpenXRCDomain(file *os.File, flags int) (*XRCDomain, error) {
	if flags&^(syscall.O_CREAT|syscall.O_EXCL) != 0 {
		return nil, fmt.Errorf("verbs: XRC domain with flags 0x%x, expected O_CREAT and O_EXCL alone: %w", flags,
			syscall.EINVAL)
	}
	fd := -1
	if file != nil {
		if fd = int(file.Fd()); fd < 0 { // -1 would mean a private domain
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

// Context returns the device that the domain belongs to.
func (d *XRCDomain) Context() *Context { return d.ctx }

// Close closes the domain; EBUSY while shared receive queues or queue pairs made or opened through it exist
// (ibv_close_xrcd(3)). The domain ends when the last client closes it.
func (d *XRCDomain) Close() error { return d.ctx.client.callHandle(abi.CloseXRCD, d.handle) }

// CreateQP makes a queue pair of type XRCRecv, to be connected (QP.ConnectNumber) with one of type XRCSend.
// It exists until the last client that made or opened it closes it.
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

// OpenQP opens a queue pair of the domain that this or another program has made (ibv_open_qp(3)); EINVAL if
// none has this number.
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
