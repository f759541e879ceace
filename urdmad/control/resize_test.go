package control_test

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// askMapped sends a request, and maps the memory that its answer brings.
func askMapped[Q, R any](t *testing.T, c *client, kind abi.Type, q Q) (r R, mem []byte) {
	t.Helper()
	if _, err := c.conn.Write(typedRequest(kind, q)); err != nil {
		t.Fatal(err)
	}
	in, oob := make([]byte, abi.MaxMessage), make([]byte, 256)
	n, oobn, _, _, err := c.conn.ReadMsgUnix(in, oob)
	if err != nil {
		t.Fatal(err)
	}
	fds, err := ancillary.Descriptors(oob[:oobn])
	r, ok := abi.Decode[R](in[:n])
	if err != nil || !ok || len(fds) != 1 {
		t.Fatalf("%v: %d bytes with %d descriptors, %v", kind, n, len(fds), err)
	}
	defer unix.Close(fds[0])
	var st unix.Stat_t
	if err = unix.Fstat(fds[0], &st); err == nil {
		mem, err = unix.Mmap(fds[0], 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return r, mem
}

// pagesOfTurns counts the pages that each turn of a worker touches first. What it returns ends
// that, and tells of the turn with most.
func pagesOfTurns(w *control.Worker) (most func() int64) {
	var worst, last int64 = 0, math.MaxInt64
	stop, ended := make(chan struct{}), make(chan struct{})
	var look func()
	look = func() {
		var used unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_THREAD, &used)
		worst, last = max(worst, used.Minflt-last), used.Minflt
		select {
		case <-stop:
			close(ended)
		default:
			w.Engine.Do(look)
		}
	}
	w.Engine.Do(look)
	w.Wake()
	return func() int64 {
		close(stop)
		<-ended
		return worst
	}
}

// pagesPerTurn is more than what a turn of a resize touches first.
const pagesPerTurn = 256

// TestResizeFullQueue: a queue that is as long as may be, and full by its client's word, is
// copied a part in each turn: the worker serves others meanwhile.
func TestResizeFullQueue(t *testing.T) {
	r := start(t)
	c := opened(t, r)
	const entries, receives = 1 << 16, 16384
	cq, mem := askMapped[abi.CreateCQRequest, abi.CQResponse](t, c, abi.CreateCQ,
		abi.CreateCQRequest{Context: 1, CQE: entries})
	abi.At[abi.CQRing](mem, int(cq.RingOffset)).Cons = ^uint32(entries - 1) // none was polled, and there were as many
	most := pagesOfTurns(r.server.Workers[0])
	askMapped[abi.ResizeCQRequest, abi.CQResponse](t, c, abi.ResizeCQ,
		abi.ResizeCQRequest{Handle: cq.Handle, CQE: entries})
	if n := most(); n > pagesPerTurn {
		t.Errorf("completion queue: %d pages in one turn, expected %d at most", n, pagesPerTurn)
	}

	srq, mem := askMapped[abi.CreateSRQRequest, abi.SRQResponse](t, c, abi.CreateSRQ,
		abi.CreateSRQRequest{PD: 2, MaxWR: receives, MaxSGE: 32, XRCD: abi.NoHandle, CQ: abi.NoHandle})
	abi.At[abi.RQRing](mem, int(srq.RQ.HeadOffset)).Prod = receives
	most = pagesOfTurns(r.server.Workers[0])
	askMapped[abi.ModifySRQRequest, abi.SRQResponse](t, c, abi.ResizeSRQ,
		abi.ModifySRQRequest{Handle: srq.Handle, Mask: abi.SRQMaskMaxWR, MaxWR: receives})
	if n := most(); n > pagesPerTurn {
		t.Errorf("shared receive queue: %d pages in one turn, expected %d at most", n, pagesPerTurn)
	}
}
