package nldev

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary/ancillarytest"
	"urdma/urdmad/control/controltest"
	"urdma/verbs/abi"
)

// TestSlowDescriptor: a descriptor that takes long to close delays neither the answer nor the end of urdmad.
func TestSlowDescriptor(t *testing.T) {
	r := controltest.Start(t, func(r *controltest.Running) { Attach(r.Server, *sample(t)) })
	c, err := controltest.Dial(r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fd := ancillarytest.SlowToClose(t)
	open := abi.OpenRDMANetlinkRequest{Header: abi.Header{Type: abi.OpenRDMANetlink,
		Length: uint32(abi.Size[abi.OpenRDMANetlinkRequest]())}}
	answer := make([]byte, maxRequest)
	if _, err := c.Write(abi.Bytes(&open)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(answer); err != nil || n != abi.Size[abi.Header]() {
		t.Fatal(n, err)
	}
	_, _, err = c.WriteMsgUnix([]byte("x"), unix.UnixRights(fd), nil)
	go unix.Close(fd) // takes long if the other end has closed it by now
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := c.Read(answer); err != nil || native.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		t.Errorf("an answer of %d bytes, %v", n, err)
	}
}
