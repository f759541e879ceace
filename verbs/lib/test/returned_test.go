package test

import (
	"encoding/binary"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// returned watches batches that create and destroy queues. It acts as another thread of the program whose
// queue gets the memory that urdmad has just taken back.
type returned struct {
	mu    sync.Mutex
	files map[uint32][]byte // by number
	rings [][]byte          // rings of existing completion queues
	again [][]byte          // rings of destroyed ones, which now belong to others
}

const (
	consOffset   = 64 // in struct urdma_abi_cq_ring
	othersReads  = 0xA5A5A5A5
	headOfTheCQs = 4 * 64
)

func (r *returned) answers(b, oob []byte) {
	h, _ := abi.Decode[abi.Header](b[:abi.Size[abi.Header]()])
	if h.Type != abi.Batch || h.Status != 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	size := abi.Size[abi.BatchResponse]()
	head, _ := abi.Decode[abi.BatchResponse](b[:size])
	fds := descriptors(oob)
	for i, b := 0, b[size:]; len(b) > 0; i++ {
		h, _ := abi.Decode[abi.Header](b[:abi.Size[abi.Header]()])
		r.answer(h.Type, b[:h.Length], fds[:head.FDs[i]])
		b, fds = b[h.Length:], fds[head.FDs[i]:]
	}
}

func (r *returned) answer(kind abi.Type, b []byte, fds []int) {
	switch kind {
	case abi.CreateCQ:
		cq, _ := abi.Decode[abi.CQResponse](b)
		if len(fds) > 0 {
			r.files[cq.Memfd], _ = unix.Mmap(fds[0], 0, int(cq.Bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
		r.rings = append(r.rings, r.files[cq.Memfd][cq.RingOffset:][:headOfTheCQs])
	case abi.DestroyQP:
		for _, ring := range r.rings {
			binary.NativeEndian.PutUint32(ring[consOffset:], othersReads)
		}
		r.again, r.rings = append(r.again, r.rings...), nil
	}
}

func descriptors(oob []byte) (all []int) {
	messages, _ := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		all = append(all, fds...)
	}
	return all
}

// startBetween runs a proxy in front of a urdmad: answers is called with each response before the program
// gets it. It returns the socket for programs.
func startBetween(t *testing.T, r *real, answers func(b, oob []byte)) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "between.sock")
	listen, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listen.Close() })
	go func() {
		for {
			client, err := listen.AcceptUnix()
			if err != nil {
				return
			}
			daemon, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: r.Socket, Net: "unixpacket"})
			if err != nil {
				client.Close()
				return
			}
			go carry(client, daemon, nil)
			go carry(daemon, client, answers)
		}
	}()
	return socket
}

// carry forwards messages with their descriptors until either end is closed.
func carry(from, to *net.UnixConn, told func(b, oob []byte)) {
	defer from.Close()
	defer to.Close()
	b, oob := make([]byte, abi.MaxMessage), make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	for {
		n, oobn, _, _, err := from.ReadMsgUnix(b, oob)
		if err != nil || n == 0 {
			return
		}
		if told != nil {
			told(b[:n], oob[:oobn])
		}
		_, _, err = to.WriteMsgUnix(b[:n], oob[:oobn], nil)
		for _, fd := range descriptors(oob[:oobn]) {
			unix.Close(fd)
		}
		if err != nil {
			return
		}
	}
}

// TestReturnedMemory: after urdmad has destroyed a connection's queues, the library writes nothing to their
// memory, which may belong to another thread's queue.
func TestReturnedMemory(t *testing.T) {
	program := slotsProgram(t)
	r := &returned{files: map[uint32][]byte{}}
	socket := startBetween(t, startReal(t), r.answers)
	c := exec.Command(program, "endpoint_destroyed")
	c.Env = append(c.Environ(), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+socket)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.again) != 2 {
		t.Fatalf("%d completion queues went in a batch, expected 2", len(r.again))
	}
	for i, ring := range r.again {
		if n := binary.NativeEndian.Uint32(ring[consOffset:]); n != othersReads {
			t.Errorf("of queue %d: the library wrote %#x where another's is", i, n)
		}
	}
}
