package verbs_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"urdma/verbs"
	"urdma/verbs/abi"
)

// member is one of several programs that receive through the same extended reliable connections.
type member struct {
	client *verbs.Client
	x      *verbs.Context
	pd     *verbs.PD
	domain *verbs.XRCDomain
	cq     *verbs.CQ
	srq    *verbs.SRQ
	memory *verbs.MR
}

// newMember opens the domain of a file, or a private one, and posts a few receives of 64 bytes, whose IDs are
// their offsets; 64 bytes for Writes follow.
func newMember(t *testing.T, c *verbs.Client, file *os.File) *member {
	t.Helper()
	m := &member{client: c, x: must(c.Devices()[0].Open())(t)}
	m.pd = must(m.x.AllocPD())(t)
	m.domain = must(m.x.OpenXRCDomain(file, syscall.O_CREAT))(t)
	m.cq = must(m.x.CreateCQ(16, must(m.x.CreateCompChannel())(t)))(t)
	m.srq = must(m.pd.CreateSRQ(verbs.SRQOptions{RecvWR: 4, XRC: m.domain, CQ: m.cq}))(t)
	m.memory = must(m.pd.AllocMemory(5*64, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead))(t)
	for at := 0; at < 4*64; at += 64 {
		ok(t, m.srq.PostRecv(&verbs.RecvWR{ID: uint64(at), SGE: []verbs.SGE{m.memory.SGE(at, 64)}}))
	}
	return m
}

// hear takes the completion of a receive and returns the message.
func (m *member) hear(t *testing.T, target *verbs.QP) string {
	t.Helper()
	var one [1]verbs.Completion
	must(m.cq.Wait(patience(t), one[:]))(t)
	if c := one[0]; c.Status != verbs.StatusSuccess || c.Op != verbs.DidRecv || c.QPN != target.QPN() {
		t.Fatalf("completion %+v, expected that of a receive of queue pair %d", c, target.QPN())
	}
	return string(m.memory.Bytes()[one[0].ID:][:one[0].ByteLen])
}

// newSource makes a queue pair that sends into domains.
func newSource(t *testing.T, c *verbs.Client) *end {
	t.Helper()
	x := must(c.Devices()[0].Open())(t)
	e := &end{cq: must(x.CreateCQ(64, must(x.CreateCompChannel())(t)))(t)}
	pd := must(x.AllocPD())(t)
	e.memory = must(pd.AllocMemory(endBytes, verbs.LocalWrite))(t)
	e.QP = must(pd.CreateQP(e.cq, nil, verbs.QPOptions{Type: verbs.XRCSend}))(t)
	return e
}

// tell sends to a shared receive queue and takes the completion.
func (e *end) tell(t *testing.T, text string, srqn uint32, status verbs.Status) {
	t.Helper()
	ok(t, e.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, Inline: []byte(text), SRQN: srqn}))
	e.next(t, status)
}

func domainFile(t *testing.T) *os.File {
	t.Helper()
	f := must(os.Create(filepath.Join(t.TempDir(), "domain")))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// TestXRC: one connection reaches two programs that share a domain, each with its own queue and memory. The
// target queue pair made by one of them outlives that program, because the other has opened it.
func TestXRC(t *testing.T) {
	d := startDaemon(t)
	file := domainFile(t)
	first, second := newMember(t, d.open(), file), newMember(t, d.open(), file)
	made := must(first.domain.CreateQP())(t)
	held := must(second.domain.OpenQP(made.QPN()))(t)
	from := newSource(t, d.open())
	ok(t, made.ConnectNumber(from.Number()))
	ok(t, from.ConnectNumber(made.Number()))
	for _, m := range []*member{first, second} {
		text := string([]byte{'t', 'o', ' ', byte(m.srq.SRQN())})
		from.tell(t, text, m.srq.SRQN(), verbs.StatusSuccess)
		if got := m.hear(t, made); got != text {
			t.Errorf("heard %q, expected %q", got, text)
		}
		ok(t, from.PostSend(&verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, Inline: []byte(text),
			Remote: m.memory.Remote(4 * 64)}))
		from.next(t, verbs.StatusSuccess)
		if got := string(m.memory.Bytes()[4*64:][:len(text)]); got != text {
			t.Errorf("written %q, expected %q", got, text)
		}
	}
	if attr := must(held.Query())(t); attr.QPState != abi.QPSRTS || attr.DestQPNum != from.QPN() {
		t.Errorf("the queue pair is held in state %d, connected with %d", attr.QPState, attr.DestQPNum)
	}
	ok(t, errors.Join(first.srq.Close(), first.client.Close()))
	from.tell(t, "still there", second.srq.SRQN(), verbs.StatusSuccess)
	if got := second.hear(t, held); got != "still there" {
		t.Errorf("heard %q", got)
	}
	from.tell(t, "gone", first.srq.SRQN(), verbs.StatusRemInvReqErr)
	if e := <-second.x.Events(); e.QP != held {
		t.Errorf("event %+v, expected one of the queue pair", e)
	}
	ok(t, errors.Join(held.Close(), second.srq.Close(), second.domain.Close()))
	for ctx := patience(t); ; time.Sleep(time.Millisecond) { // until urdmad has noticed the end of the first program
		again, err := second.x.OpenXRCDomain(file, 0)
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		ok(t, err)
		ok(t, errors.Join(again.Close(), ctx.Err()))
	}
}

// TestXRCErrors: refused calls and their errors.
func TestXRCErrors(t *testing.T) {
	d := startDaemon(t)
	c := d.open()
	m, other := newMember(t, c, domainFile(t)), newMember(t, d.open(), nil)
	from, target := newSource(t, c), must(m.domain.CreateQP())(t)
	send := verbs.SendWR{Op: verbs.OpSend, Inline: []byte("x"), SRQN: m.srq.SRQN()}
	ok(t, from.ConnectNumber(target.Number()))
	ok(t, target.ConnectNumber(from.Number()))
	pair := func(send, recv *verbs.CQ, o verbs.QPOptions) error {
		_, err := m.pd.CreateQP(send, recv, o)
		return err
	}
	queue := func(o verbs.SRQOptions) error {
		_, err := m.pd.CreateSRQ(o)
		return err
	}
	open := func(x *verbs.Context, file *os.File, flags int) error {
		_, err := x.OpenXRCDomain(file, flags)
		return err
	}
	_, elsewhere := other.domain.OpenQP(target.QPN())
	closed := must(os.Open(os.DevNull))(t)
	ok(t, closed.Close())
	for what, got := range map[string]struct{ err, want error }{
		"a flag that opens files":       {open(m.x, nil, syscall.O_TRUNC), syscall.EINVAL},
		"the domain of no other's file": {open(m.x, domainFile(t), 0), syscall.EAGAIN},
		"the domain of a closed file":   {open(m.x, closed, syscall.O_CREAT), os.ErrClosed},
		"a queue pair of another one":   {elsewhere, syscall.EINVAL},
		"a domain that has a queue":     {m.domain.Close(), syscall.EBUSY},
		"a queue without a domain":      {queue(verbs.SRQOptions{CQ: m.cq}), syscall.EINVAL},
		"a queue that completes not":    {queue(verbs.SRQOptions{XRC: m.domain}), syscall.EINVAL},
		"another client's domain":       {queue(verbs.SRQOptions{XRC: other.domain, CQ: m.cq}), syscall.EINVAL},
		"RC from a domain's queue":      {pair(m.cq, m.cq, verbs.QPOptions{SRQ: m.srq}), syscall.EINVAL},
		"RC that completes nowhere":     {pair(m.cq, nil, verbs.QPOptions{}), syscall.EINVAL},
		"XRC_SEND that receives":        {pair(m.cq, m.cq, verbs.QPOptions{Type: verbs.XRCSend}), syscall.EINVAL},
		"XRC_RECV of no domain":         {pair(nil, nil, verbs.QPOptions{Type: verbs.XRCRecv}), syscall.EINVAL},
		"a receive for XRC_SEND":        {from.PostRecv(&verbs.RecvWR{}), verbs.ErrWorkRequest},
		"a receive for XRC_RECV":        {target.PostRecv(&verbs.RecvWR{}), verbs.ErrWorkRequest},
		"a message by XRC_RECV":         {target.PostSend(&send), verbs.ErrWorkRequest},
		"a message for no queue":        {from.PostSend(&verbs.SendWR{Op: verbs.OpSend}), verbs.ErrWorkRequest},
		"an invalidation": {from.PostSend(&verbs.SendWR{Op: verbs.OpSendWithInv, SRQN: 1}),
			verbs.ErrWorkRequest},
	} {
		if !errors.Is(got.err, got.want) {
			t.Errorf("%s: %v, expected %v", what, got.err, got.want)
		}
	}
	if plain := must(m.pd.CreateSRQ(verbs.SRQOptions{}))(t); plain.SRQN() != 0 {
		t.Errorf("a queue of no domain has number %d", plain.SRQN())
	}
}

// TestXRCEnd: a resized queue keeps its number and its receives; the end of urdmad flushes sends and is
// reported to all, and closing works.
func TestXRCEnd(t *testing.T) {
	d := startDaemon(t)
	m := newMember(t, d.open(), nil)
	from, target := newSource(t, d.open()), must(m.domain.CreateQP())(t)
	ok(t, target.ConnectNumber(from.Number()))
	ok(t, from.ConnectNumber(target.Number()))
	ok(t, m.srq.Resize(64))
	for range 4 {
		from.tell(t, "hello", m.srq.SRQN(), verbs.StatusSuccess)
		if got := m.hear(t, target); got != "hello" {
			t.Errorf("heard %q", got)
		}
	}
	ok(t, from.PostSend(&verbs.SendWR{ID: 7, Op: verbs.OpSend, Inline: []byte("waits for a receive"), SRQN: m.srq.SRQN()}))
	d.Kill()
	if c := from.next(t, verbs.StatusWRFlushErr); c.ID != 7 || c.QPN != from.QPN() {
		t.Errorf("completion %+v after urdmad's end", c)
	}
	for e := range m.x.Events() {
		if e.Type == verbs.EventDeviceFatal {
			break
		}
	}
	ok(t, errors.Join(target.Close(), from.QP.Close(), m.srq.Close()))
	if err := m.srq.PostRecv(&verbs.RecvWR{}); !errors.Is(err, verbs.ErrGone) {
		t.Errorf("a receive after urdmad's end: %v", err)
	}
}
