package test

import (
	"net"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// older stands before a urdmad, and answers requests that an older one does not know as
// that would.
type older struct {
	socket  string
	listen  *net.UnixListener
	unknown map[abi.Type]*atomic.Int32 // how often they were asked
	answers func(b, oob []byte)        // is told of each, before the program; nil: nobody is
}

func startOlder(t *testing.T, r *real, unknown ...abi.Type) *older {
	t.Helper()
	o := newOlder(t, unknown...)
	o.start(t, r)
	return o
}

func newOlder(t *testing.T, unknown ...abi.Type) *older {
	t.Helper()
	o := &older{socket: filepath.Join(t.TempDir(), "older.sock"), unknown: map[abi.Type]*atomic.Int32{}}
	for _, u := range unknown {
		o.unknown[u] = &atomic.Int32{}
	}
	return o
}

func (o *older) start(t *testing.T, r *real) {
	t.Helper()
	var err error
	if o.listen, err = net.ListenUnix("unixpacket", &net.UnixAddr{Name: o.socket, Net: "unixpacket"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.listen.Close() })
	go func() {
		for {
			client, err := o.listen.AcceptUnix()
			if err != nil {
				return
			}
			daemon, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: r.socket, Net: "unixpacket"})
			if err != nil {
				client.Close()
				return
			}
			go o.carry(client, daemon, true)
			go o.carry(daemon, client, false)
		}
	}()
}

// carry takes messages with their descriptors from one to the other until either end
// hangs up.
func (o *older) carry(from, to *net.UnixConn, requests bool) {
	defer from.Close()
	defer to.Close()
	b, oob := make([]byte, abi.MaxMessage), make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	for {
		n, oobn, _, _, err := from.ReadMsgUnix(b, oob)
		if err != nil || n == 0 {
			return
		}
		h, _ := abi.Decode[abi.Header](b[:min(n, abi.Size[abi.Header]())])
		if times := o.unknown[h.Type]; requests && times != nil {
			times.Add(1)
			h.Length, h.Status = uint32(abi.Size[abi.Header]()), int32(syscall.EOPNOTSUPP)
			if _, err := from.Write(abi.Bytes(&h)); err != nil {
				return
			}
			continue
		}
		if !requests && o.answers != nil {
			o.answers(b[:n], oob[:oobn])
		}
		_, _, err = to.WriteMsgUnix(b[:n], oob[:oobn], nil)
		closeAll(oob[:oobn])
		if err != nil {
			return
		}
	}
}

func closeAll(oob []byte) {
	messages, _ := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
}

// TestOlderUrdmad: a library that asks a urdmad for something newer than that does
// without, having asked once.
func TestOlderUrdmad(t *testing.T) {
	binary := slotsProgram(t)
	for _, name := range []string{"endpoint_destroyed", "endpoints"} {
		t.Run(name, func(t *testing.T) {
			r := startReal(t)
			o := startOlder(t, r, abi.Batch, abi.PoolQueues)
			c := exec.Command(binary, name)
			c.Env = append(c.Environ(), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+o.socket)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for u, times := range o.unknown {
				if n := times.Load(); n != 1 {
					t.Errorf("%v was asked %d times", u, n)
				}
			}
		})
	}
}
