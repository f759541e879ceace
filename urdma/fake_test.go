package main

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// fakeDaemon replies to a number of snapshot requests with the sample of package report, to others with EOPNOTSUPP,
// and then closes the socket.
func fakeDaemon(t *testing.T, answers int) (socket string) {
	t.Helper()
	text, err := os.ReadFile("report/testdata/snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	return fakeAnswers(t, slices.Repeat([][]byte{text}, answers)...)
}

// fakeAnswers replies to snapshot requests with these texts, one after the other.
func fakeAnswers(t *testing.T, texts ...[]byte) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "urdmad.sock")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			for len(texts) > 0 && answer(c, texts[0]) {
				texts = texts[1:]
			}
			c.Close()
		}
	}()
	return socket
}

func answer(c *net.UnixConn, text []byte) bool {
	b := make([]byte, abi.MaxMessage)
	n, err := c.Read(b)
	if err != nil || n < abi.Size[abi.Header]() {
		return false
	}
	h, _ := abi.Decode[abi.Header](b[:abi.Size[abi.Header]()])
	resp := abi.InspectResponse{Header: h, Bytes: uint64(len(text))}
	resp.Header.Length = uint32(abi.Size[abi.InspectResponse]())
	if h.Type != abi.Inspect {
		h.Length, h.Status = uint32(abi.Size[abi.Header]()), int32(unix.EOPNOTSUPP)
		_, err = c.Write(abi.Bytes(&h))
		return err == nil
	}
	fd, err := unix.MemfdCreate("snapshot", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	_, _ = unix.Pwrite(fd, text, 0)
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
		unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	_, _, err = c.WriteMsgUnix(abi.Bytes(&resp), unix.UnixRights(fd), nil)
	return err == nil
}
