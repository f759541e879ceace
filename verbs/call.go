package verbs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// answer is one response with its descriptors.
type answer struct {
	body []byte
	fds  []int
	cut  bool // the kernel had no room for all descriptors, and there are none
}

func (a *answer) drop() {
	closeAll(a.fds)
	a.fds = nil
}

func (a *answer) header() abi.Header {
	h, _ := abi.Decode[abi.Header](a.body[:abi.Size[abi.Header]()])
	return h
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // nothing to do about a failed close
	}
}

// anyFDs is the wantFDs of a caller that counts the descriptors itself.
const anyFDs = -1

// call sends a request, whose header it fills in, and decodes the response.
// out may be nil where the response is a header alone. On success there are
// exactly wantFDs descriptors, which the caller owns.
func call[Resp, Req any](c *Client, t abi.Type, req *Req, out *Resp, sendFD, wantFDs int) ([]int, error) {
	return callContext(context.Background(), c, t, req, out, sendFD, wantFDs)
}

// callContext is call that does not wait for urdmad longer than ctx. What the
// request makes is then taken back when it is answered.
func callContext[Resp, Req any](ctx context.Context, c *Client, t abi.Type, req *Req, out *Resp, sendFD, wantFDs int) ([]int, error) {
	a, err := c.exchange(ctx, t, abi.Bytes(req), sendFD)
	if err != nil {
		return nil, err
	}
	if out != nil {
		copy(abi.Bytes(out), a.body) // on a refusal too: HELLO's carries urdmad's version
	}
	if status := a.header().Status; status != 0 {
		a.drop()
		return nil, refusal(t, status)
	}
	if a.cut {
		c.takeBack(t, &a)
		return nil, refusal(t, int32(unix.EMFILE))
	}
	if wantFDs != anyFDs && len(a.fds) != wantFDs || out != nil && len(a.body) < abi.Size[Resp]() {
		a.drop()
		return nil, fmt.Errorf("verbs: %s: response of %d bytes with %d descriptors: %w", requestName(t), len(a.body), len(a.fds), unix.EPROTO)
	}
	return a.fds, nil
}

// undoing names the request that destroys what another has made.
var undoing = map[abi.Type]abi.Type{
	abi.OpenDevice: abi.CloseDevice, abi.AllocPD: abi.DeallocPD, abi.RegMR: abi.DeregMR,
	abi.CreateChannel: abi.DestroyChannel, abi.CreateCQ: abi.DestroyCQ, abi.CreateQP: abi.DestroyQP,
	abi.CMCreateChannel: abi.CMDestroyChannel, abi.CMCreateID: abi.CMDestroyID,
}

// takeBack destroys what an answer brought that nobody will use.
func (c *Client) takeBack(t abi.Type, a *answer) {
	a.drop()
	made, ok := abi.Decode[abi.HandleMessage](a.body[:min(len(a.body), abi.Size[abi.HandleMessage]())]) // as they all begin
	if undo, known := undoing[t]; known && ok && a.header().Status == 0 {
		_ = c.callHandle(undo, made.Handle) // fails only where urdmad is gone, and the object with it
	}
}

// callHandle makes a request that names one object and returns nothing.
func (c *Client) callHandle(t abi.Type, handle uint32) error {
	_, err := call[abi.Header](c, t, &abi.HandleMessage{Handle: handle}, nil, -1, 0)
	return err
}

// exchange takes one request at a time to urdmad and back.
func (c *Client) exchange(ctx context.Context, t abi.Type, req []byte, sendFD int) (answer, error) {
	if err := c.calling.lock(ctx); err != nil {
		return answer{}, err
	}
	if err := c.send(t, req, sendFD); err != nil {
		c.calling.unlock()
		return answer{}, err
	}
	select {
	case a := <-c.answers:
		defer c.calling.unlock()
		return c.expected(a, t)
	case <-c.gone:
		defer c.calling.unlock()
		c.dropAnswer()
		return answer{}, c.endError()
	case <-ctx.Done():
		go c.abandon(t)
		return answer{}, ctx.Err()
	}
}

// send needs calling, as does what waits for the answer.
func (c *Client) send(t abi.Type, req []byte, sendFD int) error {
	if c.dead.Load() {
		return c.endError()
	}
	c.seq++
	h := abi.Header{Type: t, Length: uint32(len(req)), Seq: c.seq}
	copy(req, abi.Bytes(&h))
	var oob []byte
	if sendFD >= 0 {
		oob = unix.UnixRights(sendFD)
	}
	if _, _, err := c.control.WriteMsgUnix(req, oob, nil); err != nil {
		c.lose()
		return c.endError()
	}
	return nil
}

// expected takes the answer, if it is one, to the request sent last.
func (c *Client) expected(a answer, t abi.Type) (answer, error) {
	if h := a.header(); h.Type != t || h.Seq != c.seq {
		a.drop()
		c.lose()
		return answer{}, c.endError()
	}
	return a, nil
}

// abandon waits for an answer that the caller no longer waits for. Until then
// nobody else can ask.
func (c *Client) abandon(t abi.Type) {
	select {
	case a := <-c.answers:
		a, err := c.expected(a, t)
		c.calling.unlock()
		if err == nil {
			c.takeBack(t, &a)
		}
	case <-c.gone:
		c.dropAnswer()
		c.calling.unlock()
	}
}

// dropAnswer is for an answer that came with the end of the connection.
func (c *Client) dropAnswer() {
	select {
	case a := <-c.answers:
		a.drop()
	default:
	}
}

// readAnswers is the goroutine that reads the control socket. Its end is
// urdmad's.
func (c *Client) readAnswers() {
	defer c.lose()
	buf := make([]byte, abi.MaxMessage)
	oob := make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	for {
		n, oobn, flags, _, err := c.control.ReadMsgUnix(buf, oob)
		a := answer{body: slices.Clone(buf[:max(n, 0)]), fds: descriptors(oob[:oobn])}
		if err != nil || n < abi.Size[abi.Header]() {
			a.drop()
			return
		}
		if a.cut = flags&unix.MSG_CTRUNC != 0; a.cut {
			a.drop()
		}
		select {
		case c.answers <- a:
		default: // urdmad says nothing unasked
			a.drop()
			return
		}
		if c.dead.Load() {
			c.dropAnswer() // who asked may not look any more
		}
	}
}

func descriptors(oob []byte) (fds []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

// dialControl connects to the first place that answers.
func dialControl(ctx context.Context, places []string) (*net.UnixConn, error) {
	var dialer net.Dialer
	var all []error
	for _, path := range places {
		conn, err := dialer.DialContext(ctx, "unixpacket", path)
		if err == nil {
			return conn.(*net.UnixConn), nil
		}
		if ctx.Err() != nil || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			return nil, fmt.Errorf("verbs: connecting to urdmad: %w", err)
		}
		all = append(all, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoDaemon, errors.Join(all...))
}
