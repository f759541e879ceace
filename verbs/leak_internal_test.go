package verbs

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

// leftDescriptors is how many more are open than before, once all that is being
// closed is closed.
func leftDescriptors(t *testing.T, before int) int {
	t.Helper()
	for range 100 {
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

// bareClient is a client without a greeting, and urdmad's end of its socket.
func bareClient(t *testing.T) (*Client, *net.UnixConn) {
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
	return &Client{control: ends[0], answers: make(chan answer, 1), gone: make(chan struct{}),
		calling: newContextMutex(), sharing: newContextMutex()}, ends[1]
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

// TestAnswerAtTheEnd: an answer that comes as the connection ends leaves none of
// its descriptors open, whoever of the two is first.
func TestAnswerAtTheEnd(t *testing.T) {
	before := 0
	for round := range 1000 {
		if round == 1 {
			before = ownDescriptors(t)
		}
		c, peer := bareClient(t)
		var all sync.WaitGroup
		all.Go(c.readAnswers)
		all.Go(func() { _ = answerOnce(peer) }) // or the connection ended first
		all.Go(c.lose)
		var resp abi.HandleMessage
		fds, err := call(c, abi.OpenDevice, &abi.OpenDeviceRequest{}, &resp, -1, 1)
		if err == nil {
			closeAll(fds)
		}
		all.Wait()
		peer.Close()
	}
	if n := leftDescriptors(t, before); n > 0 {
		t.Errorf("%d descriptors left of 1000 rounds", n)
	}
}

// TestAbandonedAnswer: an answer that nobody waits for any more is undone.
func TestAbandonedAnswer(t *testing.T) {
	c, peer := bareClient(t)
	defer peer.Close()
	go c.readAnswers()
	defer c.lose()
	before := ownDescriptors(t)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := callContext(ctx, c, abi.CreateChannel, &abi.HandleMessage{}, &abi.HandleMessage{}, -1, 1)
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if c.seq == 0 {
		return // the context ended before the request went out
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

// TestOfferAfterClose: a request that is offered while its listener is closed is
// either refused or given back.
func TestOfferAfterClose(t *testing.T) {
	c := &Client{gone: make(chan struct{}), calling: newContextMutex()}
	c.dead.Store(true)
	ch := &eventChannel{client: c, ids: map[uint32]*connID{}}
	for range 20000 {
		id, child := newConnID(ch, 1), newConnID(ch, 2)
		id.requests = make(chan *Request, 4)
		offered := make(chan bool, 1)
		go func() { offered <- id.offer(newRequest(child, &abi.CMEvent{})) }()
		if err := (&Listener{id: id}).Close(); err != nil {
			t.Fatal(err)
		}
		if !<-offered {
			continue
		}
		select {
		case <-child.done:
		default:
			t.Fatal("taken by a listener that was closed, and kept")
		}
	}
}
