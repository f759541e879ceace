package control_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control"
	"urdma/urdmad/control/objects"
	"urdma/verbs/abi"
)

// part is a request of a batch.
func part[T any](kind abi.Type, m T) []byte {
	b := abi.Bytes(&m)
	h := abi.Header{Type: kind, Length: uint32(len(b))}
	copy(b, abi.Bytes(&h))
	return b
}

// callBatch sends a batch and returns the head of its answer, the answers, and how many
// descriptors came.
func callBatch(t *testing.T, c *client, count int, parts ...[]byte) (resp abi.BatchResponse, answers [][]byte,
	fds int) {
	t.Helper()
	in, oob := exchangeBatch(t, c, count, parts...)
	fds, n := len(closeReceived(oob)), len(in)
	if h, _ := abi.Decode[abi.Header](in[:abi.Size[abi.Header]()]); h.Status != 0 || h.Seq != 77 || int(h.Length) != n {
		return abi.BatchResponse{Header: h}, nil, fds
	}
	size := abi.Size[abi.BatchResponse]()
	resp, _ = abi.Decode[abi.BatchResponse](in[:size])
	for in = in[size:]; len(in) > 0; {
		h, _ := abi.Decode[abi.Header](in[:abi.Size[abi.Header]()])
		answers, in = append(answers, in[:h.Length]), in[h.Length:]
	}
	return resp, answers, fds
}

// exchangeBatch sends a batch and returns its answer with what came with it.
func exchangeBatch(t *testing.T, c *client, count int, parts ...[]byte) (in, oob []byte) {
	t.Helper()
	if _, err := c.conn.Write(batchOf(count, parts...)); err != nil {
		t.Fatal(err)
	}
	in, oob = make([]byte, abi.MaxMessage), make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	n, oobn, _, _, err := c.conn.ReadMsgUnix(in, oob)
	if err != nil {
		t.Fatal(err)
	}
	return in[:n], oob[:oobn]
}

// batchOf is a batch that says it has so many requests.
func batchOf(count int, parts ...[]byte) []byte {
	head := abi.BatchRequest{Count: uint32(count)}
	out := append([]byte(nil), abi.Bytes(&head)...)
	for _, p := range parts {
		out = append(out, p...)
	}
	h := abi.Header{Type: abi.Batch, Length: uint32(len(out)), Seq: 77}
	copy(out, abi.Bytes(&h))
	return out
}

// closeReceived closes descriptors that came, and returns the types of their files.
func closeReceived(oob []byte) (types []uint32) {
	messages, _ := unix.ParseSocketControlMessage(oob)
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			var st unix.Stat_t
			_ = unix.Fstat(fd, &st) // the type is 0 then
			types = append(types, st.Mode&unix.S_IFMT)
			unix.Close(fd)
		}
	}
	return types
}

// batchClient has greeted, and has a device open and a protection domain.
func batchClient(t *testing.T) (c *client, ctx, pd uint32) {
	return batchClientOf(t, start(t).socket, 0)
}

func batchClientOf(t *testing.T, socket string, flags uint32) (c *client, ctx, pd uint32) {
	t.Helper()
	c, err := dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.conn.Close() })
	must[abi.HelloResponse](t)(call[abi.HelloRequest, abi.HelloResponse](c, abi.Hello,
		abi.HelloRequest{ABIVersion: abi.Version, Flags: flags}))
	ctx = must[abi.HandleMessage](t)(call[abi.OpenDeviceRequest, abi.HandleMessage](c, abi.OpenDevice,
		abi.OpenDeviceRequest{})).Handle
	pd = must[abi.HandleMessage](t)(call[abi.HandleMessage, abi.HandleMessage](c, abi.AllocPD,
		abi.HandleMessage{Handle: ctx})).Handle
	return c, ctx, pd
}

// made is how a batch names what its i-th request has made.
func made(i uint32) uint32 { return abi.BatchMade + i }

func connectionParts(ctx, pd uint32) [][]byte {
	return [][]byte{
		part(abi.CreateChannel, abi.HandleMessage{Handle: ctx}),
		part(abi.CreateCQ, abi.CreateCQRequest{Context: ctx, Channel: made(0), CQE: 4}),
		part(abi.CreateQP, abi.CreateQPRequest{PD: pd, QPType: abi.QPTypeRC, SendCQ: made(1), RecvCQ: made(1),
			Cap: abi.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}}),
		part(abi.ModifyQP, abi.ModifyQPRequest{Handle: made(2),
			Mask: abi.QPMaskState | abi.QPMaskPKeyIndex | abi.QPMaskPort | abi.QPMaskAccessFlags,
			Attr: abi.QPAttr{QPState: abi.QPSInit, PortNum: 1}}),
	}
}

// TestBatchMakesAConnectionsObjects: a batch makes objects that name each other, their
// descriptors come with the one answer, and another batch destroys them.
func TestBatchMakesAConnectionsObjects(t *testing.T) {
	c, ctx, pd := batchClient(t)
	for range 3 {
		resp, answers, fds := callBatch(t, c, 4, connectionParts(ctx, pd)...)
		if resp.Done != 4 || resp.Refused != 0 || fds != 3 || resp.FDs != [abi.MaxBatch]uint8{1, 1, 1} {
			t.Fatalf("%+v with %d descriptors", resp, fds)
		}
		channel, _ := abi.Decode[abi.HandleMessage](answers[0])
		cq, _ := abi.Decode[abi.CQResponse](answers[1])
		q, _ := abi.Decode[abi.QPResponse](answers[2])
		modified, ok := abi.Decode[abi.QueryQPResponse](answers[3])
		if !ok || modified.Attr.QPState != abi.QPSInit || q.QPN == 0 {
			t.Errorf("the queue pair is %+v, modified %+v", q, modified)
		}
		resp, _, _ = callBatch(t, c, 3, part(abi.DestroyQP, abi.HandleMessage{Handle: q.Handle}),
			part(abi.DestroyCQ, abi.HandleMessage{Handle: cq.Handle}),
			part(abi.DestroyChannel, abi.HandleMessage{Handle: channel.Handle}))
		if resp.Done != 3 || resp.Refused != 0 {
			t.Errorf("destroying: %+v", resp)
		}
	}
	if a, err := call[abi.HandleMessage, abi.Header](c, abi.DeallocPD, abi.HandleMessage{Handle: pd}); err != nil ||
		a.Status != 0 {
		t.Error("something of the protection domain is left: ", a, err)
	}
}

// TestBatchStopsAtARefusal: what comes before it stays done, what comes after it is
// not begun.
func TestBatchStopsAtARefusal(t *testing.T) {
	c, ctx, pd := batchClient(t)
	bad := part(abi.CreateCQ, abi.CreateCQRequest{Context: ctx, Channel: made(7), CQE: 4})
	for name, want := range map[string]struct {
		part   []byte
		status syscall.Errno
	}{
		"of nothing made": {bad, syscall.ENOENT},
		"ahead of its maker": {part(abi.CreateCQ, abi.CreateCQRequest{Context: ctx, Channel: made(1), CQE: 4}),
			syscall.ENOENT},
		"of another kind":   {part(abi.ModifyQP, abi.ModifyQPRequest{Handle: made(0)}), syscall.ENOENT},
		"cut off":           {part(abi.CreateCQ, abi.HandleMessage{Handle: made(0)}), syscall.EINVAL},
		"batch":             {part(abi.Batch, abi.BatchRequest{}), syscall.EOPNOTSUPP},
		"with a descriptor": {part(abi.AddFile, abi.Header{}), syscall.EOPNOTSUPP},
		"unknown":           {part(abi.Type(999), abi.Header{}), syscall.EOPNOTSUPP},
	} {
		resp, answers, fds := callBatch(t, c, 3, part(abi.CreateChannel, abi.HandleMessage{Handle: ctx}), want.part,
			part(abi.DeallocPD, abi.HandleMessage{Handle: pd}))
		if resp.Done != 1 || syscall.Errno(resp.Refused) != want.status || len(answers) != 1 || fds != 1 {
			t.Errorf("%s: %+v with %d descriptors, expected %v", name, resp, fds, want.status)
			continue
		}
		channel, _ := abi.Decode[abi.HandleMessage](answers[0])
		if a, err := call[abi.HandleMessage, abi.Header](c, abi.DestroyChannel,
			abi.HandleMessage{Handle: channel.Handle}); err != nil || a.Status != 0 {
			t.Errorf("%s: what was made before is gone: %v %v", name, a, err)
		}
	}
	if a, err := call[abi.HandleMessage, abi.Header](c, abi.DeallocPD, abi.HandleMessage{Handle: pd}); err != nil ||
		a.Status != 0 {
		t.Error("what comes after a refusal was begun: ", a, err)
	}
}

// TestBatchOfNonsense: a batch that is no batch is refused as a whole.
func TestBatchOfNonsense(t *testing.T) {
	c, ctx, _ := batchClient(t)
	channel := part(abi.CreateChannel, abi.HandleMessage{Handle: ctx})
	long := part(abi.CreateChannel, abi.HandleMessage{Handle: ctx})
	copy(long[4:], []byte{200, 0, 0, 0})
	short := part(abi.CreateChannel, abi.HandleMessage{Handle: ctx})
	copy(short[4:], []byte{0, 0, 0, 0})
	for name, b := range map[string]struct {
		count int
		parts [][]byte
	}{
		"fewer than it says":             {3, [][]byte{channel, channel}},
		"more than it says":              {1, [][]byte{channel, channel}},
		"too many":                       {abi.MaxBatch + 1, nil},
		"one that says it is longer":     {2, [][]byte{channel, long}},
		"one that says it is of 0 bytes": {2, [][]byte{channel, short}},
		"a piece of a header":            {2, [][]byte{channel, channel[:7]}},
	} {
		if resp, _, fds := callBatch(t, c, b.count, b.parts...); syscall.Errno(resp.Header.Status) != syscall.EINVAL ||
			fds != 0 {
			t.Errorf("%s: %+v with %d descriptors", name, resp, fds)
		}
	}
	if resp, answers, _ := callBatch(t, c, 0); resp.Header.Status != 0 || resp.Done != 0 || len(answers) != 0 {
		t.Errorf("an empty batch: %+v", resp)
	}
}

// TestBatchBringsItsOwnDescriptors: what a batch made and destroyed again comes with the
// descriptors that it was made with, and not with those that others have by now.
func TestBatchBringsItsOwnDescriptors(t *testing.T) {
	for name, kind := range map[string]struct {
		make    func(ctx, pd uint32) []byte
		destroy abi.Type
	}{
		"completion queue": {
			func(ctx, _ uint32) []byte { return part(abi.CreateCQ, abi.CreateCQRequest{Context: ctx, CQE: 4}) },
			abi.DestroyCQ},
		"shared receive queue": {
			func(_, pd uint32) []byte {
				return part(abi.CreateSRQ, abi.CreateSRQRequest{PD: pd, MaxWR: 4, MaxSGE: 1})
			},
			abi.DestroySRQ},
	} {
		for _, flags := range []uint32{0, abi.HelloPool} {
			c, ctx, pd := batchClientOf(t, start(t).socket, flags)
			_, oob := exchangeBatch(t, c, 3, kind.make(ctx, pd), part(kind.destroy, abi.HandleMessage{Handle: made(0)}),
				part(abi.CreateChannel, abi.HandleMessage{Handle: ctx}))
			files := closeReceived(oob)
			if len(files) != 2 || files[0] != unix.S_IFREG || files[1] != unix.S_IFSOCK {
				t.Errorf("%s, flags %#x: it came with files of types %#x", name, flags, files)
			}
		}
	}
}

// TestBatchOfADeadClient: what a batch has made goes with its client.
func TestBatchOfADeadClient(t *testing.T) {
	socket := start(t).socket
	before := openDescriptors(t)
	for range 8 {
		c, ctx, pd := batchClientOf(t, socket, 0)
		callBatch(t, c, 4, connectionParts(ctx, pd)...)
		c.conn.Close()
	}
	for range 6000 {
		if openDescriptors(t) <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d descriptors are open, %d were", openDescriptors(t), before)
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for _, e := range entries {
		if _, err := os.Readlink(e); err == nil {
			open++
		}
	}
	return open
}

// TestBatchLookedAt: what a batch has made is looked up on the worker's thread, too, for
// features that somebody else asks.
func TestBatchLookedAt(t *testing.T) {
	r, c := startEquipped(t)
	w := r.server.Workers[0]
	var x *control.Session
	w.Do(func() { x = w.Clients()[0] })
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				w.Do(func() { _, _ = control.Find[*objects.PD](x, made(1)) })
			}
		}
	}()
	const ctx = 1
	for range 200 {
		resp, _, _ := callBatch(t, c, 4, part(abi.AllocPD, abi.HandleMessage{Handle: ctx}),
			part(abi.AllocPD, abi.HandleMessage{Handle: ctx}), part(abi.DeallocPD, abi.HandleMessage{Handle: made(0)}),
			part(abi.DeallocPD, abi.HandleMessage{Handle: made(1)}))
		if resp.Done != 4 {
			t.Fatalf("%d requests are done: %d", resp.Done, resp.Refused)
		}
	}
	close(stop)
	<-stopped
}
