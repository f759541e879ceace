package controltest

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// Caller is a connection to urdmad that can send any request, also an invalid one.
type Caller struct{ *net.UnixConn }

// Dial connects to urdmad.
func Dial(socket string) (*Caller, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	return &Caller{c}, err
}

// Call sends a request with descriptors, and decodes the response. Descriptors in the response
// are dropped.
func Call[Q, R any](c *Caller, kind abi.Type, q Q, send ...int) (r R, err error) {
	b := abi.Bytes(&q)
	copy(b, abi.Bytes(&abi.Header{Type: kind, Length: uint32(len(b))}))
	var rights []byte
	if len(send) > 0 {
		rights = unix.UnixRights(send...)
	}
	if _, _, err := c.WriteMsgUnix(b, rights, nil); err != nil {
		return r, err
	}
	in, oob := make([]byte, abi.MaxMessage), make([]byte, 256)
	n, oobn, _, _, err := c.ReadMsgUnix(in, oob)
	if err != nil {
		return r, err
	}
	if messages, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil {
		for i := range messages {
			fds, _ := unix.ParseUnixRights(&messages[i])
			for _, fd := range fds {
				unix.Close(fd)
			}
		}
	}
	r, ok := abi.Decode[R](in[:n])
	if !ok {
		h, _ := abi.Decode[abi.Header](in[:min(n, 16)])
		return r, fmt.Errorf("message %d: %d bytes, errno %w", kind, n, syscall.Errno(h.Status))
	}
	return r, nil
}

// StartEquipped is Start with a client that has made its objects.
func StartEquipped(t testing.TB, changes ...func(*Running)) (*Running, *Caller) {
	t.Helper()
	r := Start(t, changes...)
	c, err := Dial(r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.MakeObjects(); err != nil {
		t.Fatal(err)
	}
	return r, c
}

// MakeObjects makes one domain, region, completion queue, queue pair, id and listener.
func (c *Caller) MakeObjects() error {
	hello := abi.HelloRequest{ABIVersion: abi.Version, PID: uint32(os.Getpid())}
	copy(hello.Command[:], "tester\x1b[31m")
	_, err := Call[abi.HelloRequest, abi.HelloResponse](c, abi.Hello, hello)
	if err != nil {
		return err
	}
	ctx, err := Call[abi.OpenDeviceRequest, abi.HandleMessage](c, abi.OpenDevice, abi.OpenDeviceRequest{})
	if err != nil {
		return err
	}
	pd, err := Call[abi.HandleMessage, abi.HandleMessage](c, abi.AllocPD, abi.HandleMessage{Handle: ctx.Handle})
	if err != nil {
		return err
	}
	if _, err = Call[abi.RegMRRequest, abi.RegMRResponse](c, abi.RegMR,
		abi.RegMRRequest{PD: pd.Handle, Access: abi.AccessLocalWrite}); err != nil {
		return err
	}
	cq, err := Call[abi.CreateCQRequest, abi.CQResponse](c, abi.CreateCQ,
		abi.CreateCQRequest{Context: ctx.Handle, CQE: 10})
	if err != nil {
		return err
	}
	_, err = Call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP,
		abi.CreateQPRequest{PD: pd.Handle, QPType: abi.QPTypeRC,
			SendCQ: cq.Handle, RecvCQ: cq.Handle, Cap: abi.QPCap{MaxSendWR: 7, MaxRecvWR: 9, MaxSendSGE: 1, MaxRecvSGE: 1}})
	if err != nil {
		return err
	}
	ch, err := Call[abi.Header, abi.HandleMessage](c, abi.CMCreateChannel, abi.Header{})
	if err != nil {
		return err
	}
	for _, listen := range []bool{false, true} {
		id, err := Call[abi.CMCreateIDRequest, abi.HandleMessage](c, abi.CMCreateID,
			abi.CMCreateIDRequest{Channel: ch.Handle, PS: abi.PSTCP})
		if err != nil {
			return err
		}
		if !listen {
			continue
		}
		if _, err := Call[abi.CMValueRequest, abi.CMBound](c, abi.CMListen,
			abi.CMValueRequest{ID: id.Handle, Value: 3}); err != nil {
			return err
		}
	}
	return nil
}
