package verbs

import (
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
}

func (a *answer) drop() {
	closeAll(a.fds)
	a.fds = nil
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
	a, err := c.exchange(t, abi.Bytes(req), sendFD)
	if err != nil {
		return nil, err
	}
	h, _ := abi.Decode[abi.Header](a.body[:abi.Size[abi.Header]()])
	if out != nil {
		copy(abi.Bytes(out), a.body) // on a refusal too: HELLO's carries urdmad's version
	}
	if h.Status != 0 {
		a.drop()
		return nil, refusal(t, h.Status)
	}
	if wantFDs != anyFDs && len(a.fds) != wantFDs || out != nil && len(a.body) < abi.Size[Resp]() {
		a.drop()
		return nil, fmt.Errorf("verbs: %s: response of %d bytes with %d descriptors: %w", requestName(t), len(a.body), len(a.fds), unix.EPROTO)
	}
	return a.fds, nil
}

// callHandle makes a request that names one object and returns nothing.
func (c *Client) callHandle(t abi.Type, handle uint32) error {
	_, err := call[abi.Header](c, t, &abi.HandleMessage{Handle: handle}, nil, -1, 0)
	return err
}

// exchange takes one request at a time to urdmad and back.
func (c *Client) exchange(t abi.Type, req []byte, sendFD int) (answer, error) {
	c.calling.Lock()
	defer c.calling.Unlock()
	if c.dead.Load() {
		return answer{}, c.endError()
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
		return answer{}, c.endError()
	}
	select {
	case a := <-c.answers:
		got, _ := abi.Decode[abi.Header](a.body[:abi.Size[abi.Header]()])
		if got.Type != t || got.Seq != c.seq {
			a.drop()
			c.lose()
			return answer{}, c.endError()
		}
		return a, nil
	case <-c.gone:
		return answer{}, c.endError()
	}
}

// readAnswers is the goroutine that reads the control socket. Its end is
// urdmad's.
func (c *Client) readAnswers() {
	defer c.lose()
	buf := make([]byte, abi.MaxMessage)
	oob := make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	for {
		n, oobn, _, _, err := c.control.ReadMsgUnix(buf, oob)
		if err != nil || n < abi.Size[abi.Header]() {
			return
		}
		a := answer{body: slices.Clone(buf[:n]), fds: descriptors(oob[:oobn])}
		select {
		case c.answers <- a:
		default: // urdmad says nothing unasked
			a.drop()
			return
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
func dialControl(places []string) (*net.UnixConn, error) {
	var all []error
	for _, path := range places {
		conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
		if err == nil {
			return conn, nil
		}
		all = append(all, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoDaemon, errors.Join(all...))
}
