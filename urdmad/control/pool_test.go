package control_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"urdma/verbs/abi"
)

// queueFiles is how many mappings of queues' memory this process has.
func queueFiles(t *testing.T) (n int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "/memfd:urdma-q") || strings.Contains(line, "/memfd:urdma-cq") {
			n++
		}
	}
	return n
}

// TestQueuesShareFiles: a client that asked for it gets many queues in one file, a
// descriptor for each file and not for each queue; the file goes with the last of
// them, or with the client.
func TestQueuesShareFiles(t *testing.T) {
	for _, killed := range []bool{false, true} {
		r := start(t)
		c, err := dial(r.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.conn.Close()
		must[abi.HelloResponse](t)(call[abi.HelloRequest, abi.HelloResponse](c, abi.Hello,
			abi.HelloRequest{ABIVersion: abi.Version, Flags: abi.HelloPool}))
		ctx := must[abi.HandleMessage](t)(call[abi.OpenDeviceRequest, abi.HandleMessage](c, abi.OpenDevice,
			abi.OpenDeviceRequest{}))
		pd := must[abi.HandleMessage](t)(call[abi.HandleMessage, abi.HandleMessage](c, abi.AllocPD,
			abi.HandleMessage{Handle: ctx.Handle}))
		var handles [2][]uint32
		files := map[uint32]bool{}
		const pairs = 60 // the device has 64
		for range pairs {
			cq := must[abi.CQResponse](t)(call[abi.CreateCQRequest, abi.CQResponse](c, abi.CreateCQ,
				abi.CreateCQRequest{Context: ctx.Handle, CQE: 10}))
			q := must[abi.QPResponse](t)(call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP,
				abi.CreateQPRequest{PD: pd.Handle, QPType: abi.QPTypeRC,
					SendCQ: cq.Handle, RecvCQ: cq.Handle, Cap: abi.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}}))
			handles[0], handles[1] = append(handles[0], q.Handle), append(handles[1], cq.Handle)
			files[cq.Memfd], files[q.Memfd] = true, true
		}
		if n := queueFiles(t); len(files) > 3 || files[0] || n != len(files) {
			t.Errorf("%d queues lie in files %v; %d are mapped", 2*pairs, files, n)
		}
		large := must[abi.CQResponse](t)(call[abi.CreateCQRequest, abi.CQResponse](c, abi.CreateCQ,
			abi.CreateCQRequest{Context: ctx.Handle, CQE: 1 << 16}))
		if large.Memfd != 0 {
			t.Errorf("a queue of %d bytes shares file %d", large.Bytes, large.Memfd)
		}
		if killed {
			c.conn.Close()
		} else {
			for i, kind := range []abi.Type{abi.DestroyQP, abi.DestroyCQ} {
				for _, h := range append(handles[i], large.Handle)[:pairs+i] {
					if a, err := call[abi.HandleMessage, abi.Header](c, kind, abi.HandleMessage{Handle: h}); err != nil ||
						a.Status != 0 {
						t.Fatal(a, err)
					}
				}
			}
		}
		for range 6000 {
			if queueFiles(t) == 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := queueFiles(t); n != 0 {
			t.Errorf("killed %v: %d files are left", killed, n)
		}
	}
}
