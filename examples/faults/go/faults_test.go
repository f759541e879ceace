package faults

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"urdma/verbs"
)

const size = 1 << 20

// loopback is a queue pair connected with itself.
type loopback struct {
	*verbs.QP
	client *verbs.Client
	mr     *verbs.MR
}

// open opens a loopback on a client of its own, with which everything that the test injects ends.
func open(t *testing.T) *loopback {
	t.Helper()
	client, err := verbs.Open("")
	if errors.Is(err, verbs.ErrNoDaemon) {
		t.Skip(err)
	}
	check(t, err)
	t.Cleanup(func() { client.Close() })
	x, err := client.Devices()[0].Open()
	check(t, err)
	pd, err := x.AllocPD()
	check(t, err)
	mr, err := pd.AllocMemory(2*size, verbs.LocalWrite|verbs.RemoteWrite)
	check(t, err)
	cq, err := x.CreateCQ(16, nil)
	check(t, err)
	qp, err := pd.CreateQP(cq, cq, verbs.QPOptions{})
	check(t, err)
	check(t, qp.ConnectNumber(qp.Number()))
	return &loopback{qp, client, mr}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inject carries out statements for the objects of this client.
func (l *loopback) inject(t *testing.T, format string, args ...any) uint64 {
	t.Helper()
	n, err := l.client.Inject(fmt.Sprintf(format, args...))
	check(t, err)
	return n
}

// write returns the status of the completion.
func (l *loopback) write(t *testing.T, bytes int) verbs.Status {
	t.Helper()
	check(t, l.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, SGE: []verbs.SGE{l.mr.SGE(0, bytes)},
		Remote: l.mr.Remote(size)}))
	var done [1]verbs.Completion
	for {
		n, err := l.SendCQ().Poll(done[:])
		check(t, err)
		if n == 1 {
			return done[0].Status
		}
	}
}

func TestThirdWriteFails(t *testing.T) {
	l := open(t)
	rule := l.inject(t, "send status=RETRY_EXC_ERR nth=3 qp=%x", l.QPN())
	for i, want := range []verbs.Status{verbs.StatusSuccess, verbs.StatusSuccess, verbs.StatusRetryExcErr} {
		if got := l.write(t, 64); got != want {
			t.Errorf("write %d: %v, expected %v", i+1, got, want)
		}
	}
	if hits := l.inject(t, "hits %d", rule); hits != 1 {
		t.Errorf("the rule has hit %d, expected 1", hits)
	}
}

func TestCutAfter1MiB(t *testing.T) {
	l := open(t)
	l.inject(t, "send status=RETRY_EXC_ERR bytes=1MiB qp=%x", l.QPN())
	if got := l.write(t, size); got != verbs.StatusSuccess {
		t.Errorf("1 MiB: %v", got)
	}
	if got := l.write(t, 1); got != verbs.StatusRetryExcErr {
		t.Errorf("a byte after 1 MiB: %v, expected %v", got, verbs.StatusRetryExcErr)
	}
}

func TestRegistrationFails(t *testing.T) {
	l := open(t)
	l.inject(t, "call ibv_reg_mr errno=ENOMEM")
	if _, err := l.PD().AllocMemory(4096, verbs.LocalWrite); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("%v, expected ENOMEM", err)
	}
}
