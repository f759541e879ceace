package verbs

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// call sends one request and waits for its response; fds travel with the
// request, the response's descriptors are returned and the caller's. An errno of
// urdmad's comes back as a syscall.Errno.
func call[Req, Resp any](c *Client, t abi.Type, req *Req, resp *Resp, fds ...int) (got []int, err error) {
	c.call.Lock()
	defer c.call.Unlock()
	c.seq++
	out := abi.Bytes(req)
	h := abi.Header{Type: t, Length: uint32(len(out)), Seq: c.seq}
	copy(out, abi.Bytes(&h))
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	if _, _, err := c.conn.WriteMsgUnix(out, oob, nil); err != nil {
		return nil, c.lost(err)
	}
	oob = make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	n, oobn, _, _, err := c.conn.ReadMsgUnix(c.reply[:], oob)
	if err != nil || n == 0 {
		return nil, c.lost(err)
	}
	if got, err = rights(oob[:oobn]); err != nil {
		return nil, err
	}
	if err := c.take(abi.Bytes(resp), n, h); err != nil {
		closeAll(got)
		return nil, err
	}
	return got, nil
}

// take checks a response of n bytes and copies it out.
func (c *Client) take(resp []byte, n int, sent abi.Header) error {
	size := abi.Size[abi.Header]()
	if n < size {
		return c.lost(fmt.Errorf("response of %d bytes", n))
	}
	h, _ := abi.Decode[abi.Header](c.reply[:size])
	switch {
	case h.Type != sent.Type || h.Seq != sent.Seq:
		return c.lost(fmt.Errorf("response to message %d (type %d), expected %d (type %d)", h.Seq, h.Type, sent.Seq, sent.Type))
	case h.Status != 0:
		return syscall.Errno(h.Status)
	case n != len(resp):
		return c.lost(fmt.Errorf("response of %d bytes to a message of type %d, expected %d", n, h.Type, len(resp)))
	}
	copy(resp, c.reply[:n])
	return nil
}

// lost notes that the session is over.
func (c *Client) lost(err error) error {
	c.gone.Store(true)
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if err == nil {
		return ErrGone
	}
	return fmt.Errorf("%w: %w", ErrGone, err)
}

func rights(oob []byte) (fds []int, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("verbs: descriptors from urdmad: %w", err)
	}
	for i := range messages {
		some, err := unix.ParseUnixRights(&messages[i])
		if err == nil {
			fds = append(fds, some...)
		}
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // nothing to do about a failed close
	}
}

// one expects exactly one descriptor with a response.
func one(what string, fds []int) (int, error) {
	if len(fds) == 1 {
		return fds[0], nil
	}
	closeAll(fds)
	return -1, fmt.Errorf("verbs: %s: urdmad sent %d descriptors, expected 1", what, len(fds))
}

// release asks urdmad to forget an object.
func release(c *Client, t abi.Type, handle uint32) error {
	req := abi.HandleMessage{Handle: handle}
	var resp abi.Header
	_, err := call(c, t, &req, &resp)
	return err
}
