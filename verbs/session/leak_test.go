package session

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// leftDescriptors returns how many more descriptors are open than before, after a moment for those that are
// being closed.
func leftDescriptors(t *testing.T, before int) int {
	t.Helper()
	for range 3000 {
		if ownDescriptors(t) <= before {
			return 0
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ownDescriptors(t) - before
}

func ownDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// bareSession returns a session without HELLO, and urdmad's end of its socket.
func bareSession(t *testing.T) (*Session, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "control")
		conn, err := net.FileConn(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		ends[i] = conn.(*net.UnixConn)
	}
	return over(ends[0], func() {}), ends[1]
}

// answerOnce answers a request with a descriptor.
func answerOnce(peer *net.UnixConn) error {
	buf := make([]byte, abi.MaxMessage)
	n, err := peer.Read(buf)
	if err != nil || n < abi.Size[abi.Header]() {
		return err
	}
	req, _ := abi.Decode[abi.Header](buf[:abi.Size[abi.Header]()])
	resp := abi.HandleMessage{Handle: 7}
	h := abi.Header{Type: req.Type, Seq: req.Seq, Length: uint32(abi.Size[abi.HandleMessage]())}
	body := abi.Bytes(&resp)
	copy(body, abi.Bytes(&h))
	_, _, err = peer.WriteMsgUnix(body, unix.UnixRights(2), nil)
	return err
}

// TestAnswerAtTheEnd: a response that comes while the session ends leaves none of its descriptors open,
// whichever is first.
func TestAnswerAtTheEnd(t *testing.T) {
	before := 0
	for round := range 1000 {
		if round == 1 {
			before = ownDescriptors(t)
		}
		c, peer := bareSession(t)
		var all sync.WaitGroup
		all.Go(c.readAnswers)
		all.Go(func() { _ = answerOnce(peer) }) // may fail: the session ended first
		all.Go(c.Lose)
		var resp abi.HandleMessage
		fds, err := Call(context.Background(), c, abi.OpenDevice, &abi.OpenDeviceRequest{}, &resp, -1, 1)
		if err == nil {
			CloseAll(fds)
		}
		all.Wait()
		peer.Close()
	}
	if n := leftDescriptors(t, before); n > 0 {
		t.Errorf("%d descriptors left of 1000 rounds", n)
	}
}

// TestAbandonedAnswer: an object created by a response that nobody waits for is destroyed.
func TestAbandonedAnswer(t *testing.T) {
	c, peer := bareSession(t)
	defer peer.Close()
	go c.readAnswers()
	defer c.Lose()
	before := ownDescriptors(t)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := Call(ctx, c, abi.CreateChannel, &abi.HandleMessage{}, &abi.HandleMessage{}, -1, 1)
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if c.seq == 0 {
		return // the context ended before the request was sent
	}
	if err := answerOnce(peer); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, abi.MaxMessage)
	n, err := peer.Read(buf)
	undo, ok := abi.Decode[abi.HandleMessage](buf[:max(n, 0)])
	if err != nil || !ok || undo.Header.Type != abi.DestroyChannel || undo.Handle != 7 {
		t.Errorf("urdmad was asked %+v (%v), expected to destroy channel 7", undo, err)
	}
	if n := leftDescriptors(t, before); n > 0 {
		t.Errorf("%d descriptors left", n)
	}
}
