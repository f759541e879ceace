package control_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary"
	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// mutationStride is of how many mutations a test tries one: prime numbers, so that each kind of them
// has its turn.
func mutationStride() int {
	if os.Getenv("URDMA_LONG") != "" {
		return 11
	}
	return 401
}

// program is a client that speaks the control protocol, with the descriptors that it got.
type program struct {
	t    *testing.T
	c    *client
	fds  map[uint32][]int // by the handle of the object
	made []creation       // objects, the newest last
	dead bool             // urdmad has hung up
}

// creation is an object, and the request that destroys it.
type creation struct {
	handle uint32
	undo   abi.Type
}

func newProgram(t *testing.T, r *running) *program {
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	return &program{t: t, c: c, fds: map[uint32][]int{}}
}

func (p *program) leave() {
	p.c.conn.Close()
	for _, fds := range p.fds {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
}

// encode returns the bytes of a request structure, whose padding is all named.
func encode(kind abi.Type, request any) []byte {
	b, err := binary.Append(nil, binary.NativeEndian, request)
	if err != nil {
		panic(err)
	}
	copy(b, abi.Bytes(&abi.Header{Type: kind, Length: uint32(len(b)), Seq: 77}))
	return b
}

// field is an integer or an array of bytes of a request.
type field struct {
	name string
	at   int
	size int
}

// fieldsOf are the fields of a request structure, as urdma_abi.h has them.
func fieldsOf(name string, t reflect.Type, at int) (list []field) {
	switch {
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			list = append(list, fieldsOf(name+"."+f.Name, f.Type, at+int(f.Offset))...)
		}
	case t.Kind() == reflect.Array && t.Elem().Kind() == reflect.Uint8 && t.Len() > 16:
		list = []field{{name + "[0]", at, 1}, {name + "[last]", at + t.Len() - 1, 1}}
	default:
		list = []field{{name, at, int(t.Size())}}
	}
	return list
}

// values are those that a field may come to have.
func (f field) values(was []byte) (list [][]byte) {
	add := func(n uint64) {
		b := make([]byte, 8)
		binary.NativeEndian.PutUint64(b, n)
		list = append(list, b[:f.size])
	}
	if f.size > 8 {
		return [][]byte{make([]byte, f.size), bytes.Repeat([]byte{0xff}, f.size)}
	}
	b := make([]byte, 8)
	copy(b, was)
	n, bits := binary.NativeEndian.Uint64(b), f.size*8
	for v := range uint64(24) { // handles of every kind, and all values of enumerations
		add(v)
	}
	for _, v := range []uint64{n + 1, n - 1, n ^ 1<<(bits-1), n + 4096, 1 << (bits - 1), 1<<(bits-1) - 1, 1 << (bits / 2),
		math.MaxUint64, math.MaxUint64 - 4095, abi.BatchMade, abi.MaxMessage} {
		add(v)
	}
	return list
}

// mutant is one change to a request, which may come with other descriptors. ends: the session ends
// because of it.
type mutant struct {
	name string
	b    []byte
	fds  string // "", "none", "another", "two", "a directory"
	ends bool
}

// mutants are the changes to each field of a request, to its length, type and descriptors.
func mutants(kind abi.Type, request any) (list []mutant) {
	whole := encode(kind, request)
	add := func(name string, ends bool, do func(b []byte) []byte) {
		list = append(list, mutant{name: name, b: do(slices.Clone(whole)), ends: ends})
	}
	length := func(b []byte) []byte {
		binary.NativeEndian.PutUint32(b[4:], uint32(len(b)))
		return b
	}
	add("nothing", false, func(b []byte) []byte { return b })
	for _, f := range fieldsOf("", reflect.TypeOf(request), 0) {
		for _, v := range f.values(whole[f.at:][:f.size]) {
			ends := f.name == ".Header.Length" && !bytes.Equal(v, whole[4:8])
			add(fmt.Sprintf("%s = %#x", f.name, v), ends, func(b []byte) []byte { copy(b[f.at:], v); return b })
		}
	}
	for n := range abi.Type(80) {
		add(fmt.Sprintf("type %v", n), false, func(b []byte) []byte {
			binary.NativeEndian.PutUint32(b, uint32(n))
			return length(append(b, make([]byte, max(0, n.Size()-len(b)))...)[:max(16, n.Size())])
		})
	}
	for _, n := range []int{4, 8, len(whole) - 1} {
		add(fmt.Sprintf("cut to %d bytes", n), true, func(b []byte) []byte { return b[:n] })
	}
	for _, n := range []int{16, 20, len(whole) - 8, len(whole) - 1, len(whole) + 1, len(whole) + 8, abi.MaxMessage} {
		add(fmt.Sprintf("of %d bytes", n), n < 16, func(b []byte) []byte {
			return length(append(b, make([]byte, max(0, n-len(b)))...)[:n])
		})
	}
	add("longer than the largest", true, func(b []byte) []byte {
		return length(append(b, make([]byte, abi.MaxMessage+1-len(b))...))
	})
	for _, fds := range []string{"none", "another", "two", "a directory"} {
		list = append(list, mutant{name: "descriptors: " + fds, b: whole, fds: fds})
	}
	return list
}

// descriptors are copies of those that a request comes with, or others.
func descriptors(t *testing.T, instead string, fds []int) (list []int) {
	open := func(path string, flags int) {
		fd, err := unix.Open(path, flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fd)
	}
	switch instead {
	case "none":
		return nil
	case "another":
		open("/dev/null", unix.O_RDWR)
		return list
	case "a directory":
		open("/", unix.O_PATH)
		return list
	case "two":
		open("/proc/self/mem", unix.O_RDWR)
	}
	for _, fd := range fds {
		n, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list
}

// send sends a message and returns the answer; nil when urdmad hung up. The answer must be one to
// this message.
func (p *program) send(b []byte, fds []int) []byte {
	p.t.Helper()
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	_, _, err := p.c.conn.WriteMsgUnix(b, oob, nil)
	for _, fd := range fds {
		unix.Close(fd)
	}
	if err != nil {
		p.dead = true
		return nil
	}
	in, rights := make([]byte, abi.MaxMessage), make([]byte, unix.CmsgSpace(4*abi.MaxFDs))
	_ = p.c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	n, oobn, _, _, err := p.c.conn.ReadMsgUnix(in, rights)
	if os.IsTimeout(err) {
		p.t.Fatal("no answer within a minute")
	}
	got, _ := ancillary.Descriptors(rights[:oobn])
	if err != nil || n == 0 {
		p.dead = true
		return nil
	}
	h, ok := abi.Decode[abi.Header](in[:min(n, abi.Size[abi.Header]())])
	sent, _ := abi.Decode[abi.Header](b[:abi.Size[abi.Header]()])
	if !ok || int(h.Length) != n || h.Type != sent.Type || h.Seq != sent.Seq || h.Status < 0 || h.Status > 133 {
		p.t.Errorf("%d bytes answer %+v with %+v", n, sent, h)
	}
	if h.Status == 0 {
		p.gone(b)
	}
	p.took(h, in[:n], got)
	return in[:n]
}

// gone forgets the object that a request has destroyed.
func (p *program) gone(b []byte) {
	if q, ok := abi.Decode[abi.RegMRRequest](b); ok && q.Header.Type == abi.RegMR {
		p.made = slices.DeleteFunc(p.made, func(m creation) bool { return m.handle == q.Replaces })
	}
	if q, ok := abi.Decode[abi.HandleMessage](b); ok {
		p.made = slices.DeleteFunc(p.made, func(m creation) bool { return m == creation{q.Handle, q.Header.Type} })
	}
}

// took notes the object that a request has made, and the descriptors.
func (p *program) took(h abi.Header, answer []byte, fds []int) {
	if h.Type == abi.Batch && h.Status == 0 {
		for b := answer[abi.Size[abi.BatchResponse]():]; len(b) >= abi.Size[abi.Header](); {
			one, _ := abi.Decode[abi.Header](b[:abi.Size[abi.Header]()])
			p.took(one, b[:one.Length], nil)
			b = b[one.Length:]
		}
	}
	if undo := h.Type.Undo(); h.Status == 0 && undo != abi.None && len(answer) >= 20 {
		handle := binary.NativeEndian.Uint32(answer[16:])
		p.made = append(p.made, creation{handle, undo})
		p.fds[handle] = append(p.fds[handle], fds...)
		return
	}
	p.fds[0] = append(p.fds[0], fds...)
}

func statusOf(answer []byte) syscall.Errno {
	h, _ := abi.Decode[abi.Header](answer[:abi.Size[abi.Header]()])
	return syscall.Errno(h.Status)
}

// held is all that a urdmad has of its clients.
type held struct {
	objects, pairs, regions int
	usage                   string
}

func (r *running) holds() (h held) {
	w := r.server.Workers[0]
	w.Do(func() {
		h = held{objects: r.server.Objects(), pairs: w.Engine.QPs.Len(), regions: w.Engine.QPs.Regions.Len()}
	})
	for _, u := range r.server.Usage() {
		h.usage += fmt.Sprintf("%s %d, ", u.Name, u.Used)
	}
	return h
}

// when says when the changed request comes.
type when string

const (
	instead when = "instead"
	before  when = "before"
	behind  when = "behind"
	late    when = "late"       // when all objects are destroyed
	other   when = "from other" // of a program that has only greeted
)

// mutated is a program that makes every request, and a change to one of them.
type mutated struct {
	*program
	r       *running
	n       int // number of requests so far
	at, way int // the request that is changed, and how
	when    when
	missed  func()                   // the changed request that comes late
	mutants func(int, abi.Type, any) // called for every request
	events  uint32                   // handle of the event channel
	files   *files
	strict  bool // every request must be carried out
}

// ask makes a request of the exchange.
func (x *mutated) ask(kind abi.Type, request any, fds ...int) []byte {
	x.t.Helper()
	i := x.n
	if x.n++; x.mutants != nil {
		x.mutants(i, kind, request)
	}
	var answer []byte
	try := func(p *program) {
		m := mutants(kind, request)[x.way]
		answer = x.changed(p, &m, i, fds)
	}
	if i == x.at {
		switch x.when {
		case instead:
			try(x.program)
			return answer
		case before:
			try(x.program)
		case late:
			x.missed = func() { try(x.program) }
		case other:
			p := newProgram(x.t, x.r)
			p.send(encode(abi.Hello, abi.HelloRequest{ABIVersion: abi.Version}), nil)
			try(p)
			p.leave()
		}
	}
	answer = x.send(encode(kind, request), descriptors(x.t, "", fds))
	if x.strict && statusOf(answer) != 0 {
		x.t.Errorf("request %d, %v: %v", i, kind, statusOf(answer))
	}
	if i == x.at && x.when == behind {
		right := answer
		try(x.program)
		return right
	}
	return answer
}

// changed sends a changed request. A refusal has changed nothing, and the session ends only if the
// request is one that ends it.
func (x *mutated) changed(p *program, m *mutant, i int, fds []int) []byte {
	x.t.Helper()
	had := x.r.holds()
	answer := p.send(m.b, descriptors(x.t, m.fds, fds))
	kind := abi.Type(binary.NativeEndian.Uint32(m.b))
	first := i == 0 && (x.when == instead || x.when == before)
	switch ends := m.ends || first && kind != abi.Hello && kind.Way() != abi.Looks; {
	case p.dead:
	case answer == nil && !ends:
		x.t.Errorf("%s: the session has ended", m.name)
	case answer != nil && ends:
		x.t.Errorf("%s: the session goes on, with %v", m.name, statusOf(answer))
	case answer != nil && statusOf(answer) != 0 && !first:
		await(x.t, m.name+" was refused, and has changed what urdmad has", had, x.r.holds)
	}
	return answer
}

// await waits until urdmad has again what it had.
func await[T comparable](t *testing.T, what string, had T, look func() T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Microsecond) {
		now := look()
		if now == had {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%s: it had %+v, it has %+v", what, had, now)
			return
		}
	}
}

// handle is the handle in an answer, or 0.
func (x *mutated) handle(kind abi.Type, request any, fds ...int) uint32 {
	x.t.Helper()
	if answer := x.ask(kind, request, fds...); len(answer) >= 20 && statusOf(answer) == 0 {
		return binary.NativeEndian.Uint32(answer[16:])
	}
	return 0
}

// event reads the next event of rdma_cm, and notes the id that comes with it. A changed request may
// be one that causes none.
func (x *mutated) event() (ev abi.CMEvent) {
	limit := time.Minute
	if x.at >= 0 {
		limit = 5 * time.Millisecond
	}
	ev, _ = x.eventWithin(x.events, limit)
	return ev
}

// eventWithin is event, of any channel.
func (x *mutated) eventWithin(channel uint32, limit time.Duration) (ev abi.CMEvent, ok bool) {
	fds := x.fds[channel]
	if len(fds) == 0 {
		return ev, false
	}
	poll := []unix.PollFd{{Fd: int32(fds[0]), Events: unix.POLLIN}}
	b := make([]byte, abi.MaxMessage)
	for end := time.Now().Add(limit); ; {
		n, _, err := unix.Recvfrom(fds[0], b, unix.MSG_DONTWAIT)
		if err == nil {
			if ev, ok = abi.Decode[abi.CMEvent](b[:n]); ok && ev.Child != 0 {
				x.made = append(x.made, creation{ev.Child, abi.CMDestroyID})
			}
			return ev, ok
		}
		left := time.Until(end)
		if left <= 0 {
			return ev, false
		}
		_, _ = unix.Poll(poll, int(left.Milliseconds())+1)
	}
}

// hear notes the ids of events that nobody has read.
func (x *mutated) hear() {
	for _, m := range slices.Clone(x.made) {
		for ok := m.undo == abi.CMDestroyChannel; ok; {
			_, ok = x.eventWithin(m.handle, 0)
		}
	}
}

// file is a memfd that can't shrink.
func file(t *testing.T) int {
	fd, err := unix.MemfdCreate("mutation", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Ftruncate(fd, 1<<20)
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	return fd
}

// files are those that programs send to urdmad: their own memory, memory that they share, and the file
// of an XRC domain.
type files struct{ self, shared, domain int }

func (f *files) close() {
	for _, fd := range []int{f.self, f.shared, f.domain} {
		unix.Close(fd)
	}
}

var allRights = uint32(abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic |
	abi.AccessMWBind)

// run makes every request, each in the state that it is for.
func (x *mutated) run() {
	x.ask(abi.Hello, abi.HelloRequest{ABIVersion: abi.Version, PID: uint32(os.Getpid()), Flags: abi.HelloPool},
		x.files.self)
	x.ask(abi.QueryDevice, abi.QueryDeviceRequest{})
	device := x.handle(abi.OpenDevice, abi.OpenDeviceRequest{})
	pd := x.handle(abi.AllocPD, abi.HandleMessage{Handle: device})
	mapped := x.handle(abi.AddFile, abi.Header{}, x.files.shared)
	mr := x.handle(abi.RegMR, abi.RegMRRequest{PD: pd, Access: allRights, Addr: 4096, Length: 1 << 16,
		IOVA: 4096, File: mapped})
	x.handle(abi.RegMR, abi.RegMRRequest{PD: pd, Addr: 1 << 20, Length: 4096, IOVA: 1 << 20, Path: abi.PathFallback})
	x.handle(abi.RegMR, abi.RegMRRequest{PD: pd, Path: abi.PathNull})
	x.handle(abi.RegMR, abi.RegMRRequest{PD: pd, Access: allRights, Length: 1 << 12, File: mapped, Replaces: mr})
	x.handle(abi.AllocMW, abi.AllocMWRequest{PD: pd, Type: 2})
	x.queues(device, pd)
	x.connections(device, pd)
	x.ask(abi.Explain, abi.ExplainRequest{Number: 1})
	x.ask(abi.Warn, abi.WarnRequest{Number: abi.PitfallSmallCQ})
	x.ask(abi.Mark, abi.MarkRequest{Text: [abi.MarkBytes]byte{'m'}})
}

// queues makes queues and queue pairs of every type.
func (x *mutated) queues(device, pd uint32) {
	channel := x.handle(abi.CreateChannel, abi.HandleMessage{Handle: device})
	cq := x.handle(abi.CreateCQ, abi.CreateCQRequest{Context: device, Channel: channel, CQE: 16})
	x.ask(abi.ResizeCQ, abi.ResizeCQRequest{Handle: cq, CQE: 32})
	srq := x.handle(abi.CreateSRQ, abi.CreateSRQRequest{PD: pd, MaxWR: 8, MaxSGE: 1})
	x.ask(abi.ModifySRQ, abi.ModifySRQRequest{Handle: srq, Mask: 2, SRQLimit: 1})
	x.ask(abi.ResizeSRQ, abi.ModifySRQRequest{Handle: srq, Mask: 1, MaxWR: 16})
	x.ask(abi.QuerySRQ, abi.HandleMessage{Handle: srq})
	plain := abi.CreateQPRequest{PD: pd, QPType: abi.QPTypeRC, SendCQ: cq, RecvCQ: cq,
		Cap: abi.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}}
	first, second := x.pair(plain), x.pair(plain)
	shared := plain
	shared.SRQ, shared.Cap.MaxRecvWR = srq, 0
	x.pair(shared)
	for _, q := range [2][2][2]uint32{{first, second}, {second, first}} {
		x.toRTS(q[0][0], q[1][1])
	}
	x.ask(abi.QueryQP, abi.HandleMessage{Handle: first[0]})
	x.datagrams(plain)
	xrcd := x.handle(abi.OpenXRCD, abi.OpenXRCDRequest{Context: device, OFlags: unix.O_CREAT}, x.files.domain)
	x.handle(abi.CreateSRQ, abi.CreateSRQRequest{PD: pd, MaxWR: 8, MaxSGE: 1, SRQType: abi.SRQTypeXRC, XRCD: xrcd, CQ: cq})
	target := x.pair(abi.CreateQPRequest{QPType: abi.QPTypeXRCRecv, XRCD: xrcd})
	x.handle(abi.OpenQP, abi.OpenQPRequest{XRCD: xrcd, QPNum: target[1]})
	x.pair(abi.CreateQPRequest{PD: pd, QPType: abi.QPTypeXRCSend, SendCQ: cq,
		Cap: abi.QPCap{MaxSendWR: 4, MaxSendSGE: 1}})
	batch := struct {
		abi.BatchRequest
		Queue abi.CreateCQRequest
		Pair  abi.CreateQPRequest
	}{abi.BatchRequest{Count: 2}, abi.CreateCQRequest{Context: device, CQE: 4}, plain}
	batch.Queue.Header = abi.Header{Type: abi.CreateCQ, Length: uint32(abi.CreateCQ.Size())}
	batch.Pair.Header = abi.Header{Type: abi.CreateQP, Length: uint32(abi.CreateQP.Size())}
	batch.Pair.SendCQ, batch.Pair.SRQ = abi.BatchMade, abi.NoHandle
	x.ask(abi.Batch, batch)
}

// pair makes a queue pair, and returns its handle and number.
func (x *mutated) pair(request abi.CreateQPRequest) [2]uint32 {
	if resp, ok := abi.Decode[abi.QPResponse](x.ask(abi.CreateQP, request)); ok {
		return [2]uint32{resp.Handle, resp.QPN}
	}
	return [2]uint32{}
}

// toRTS connects a queue pair to another by its number.
func (x *mutated) toRTS(handle, peer uint32) {
	own := netip.MustParseAddr("198.18.0.1").As16()
	attr := abi.QPAttr{PathMTU: 3, MaxDestRdAtomic: 4, MaxRdAtomic: 4, MinRNRTimer: 12, Timeout: 14,
		RetryCnt: 7, RNRRetry: 7,
		IsGlobal: 1, PortNum: 1, AHPortNum: 1, DGID: own, DestQPNum: peer, QPAccessFlags: allRights &^ abi.AccessMWBind}
	for _, move := range [][2]uint32{
		{abi.QPSInit, abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskAccessFlags},
		{abi.QPSRTR, abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN | abi.QPMaskMaxDestRdAtomic |
			abi.QPMaskMinRNRTimer},
		{abi.QPSRTS, abi.QPMaskSQPSN | abi.QPMaskMaxQPRdAtomic | abi.QPMaskTimeout | abi.QPMaskRetryCnt |
			abi.QPMaskRNRRetry},
	} {
		attr.QPState = move[0]
		x.ask(abi.ModifyQP, abi.ModifyQPRequest{Handle: handle, Mask: move[1] | abi.QPMaskState, Attr: attr})
	}
}

var group = control.AddrFrom4([4]byte{224, 1, 2, 3}, 0)

// detach takes the queue pairs out of the group, if a changed request has left one in it: members can't
// be destroyed.
func (x *mutated) detach() {
	for _, m := range x.made {
		if x.at >= 0 && m.undo == abi.DestroyQP {
			x.send(encode(abi.DetachMcast, abi.McastRequest{QP: m.handle, Group: group}), nil)
		}
	}
}

// datagrams makes a queue pair of type UD a member of a group.
func (x *mutated) datagrams(like abi.CreateQPRequest) {
	like.QPType, like.SRQ = abi.QPTypeUD, abi.NoHandle
	ud := x.pair(like)
	attr := abi.QPAttr{PortNum: 1, QKey: 7}
	for _, move := range [][2]uint32{{abi.QPSInit, abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskQKey}, {abi.QPSRTR, 0},
		{abi.QPSRTS, abi.QPMaskSQPSN}} {
		attr.QPState = move[0]
		x.ask(abi.ModifyQP, abi.ModifyQPRequest{Handle: ud[0], Mask: move[1] | abi.QPMaskState, Attr: attr})
	}
	x.ask(abi.AttachMcast, abi.McastRequest{QP: ud[0], Group: group})
	x.ask(abi.DetachMcast, abi.McastRequest{QP: ud[0], Group: group})
}

// connections connects an id to another of the same program, twice: accepted and rejected.
func (x *mutated) connections(device, pd uint32) {
	x.events = x.handle(abi.CMCreateChannel, abi.Header{})
	create := abi.CMCreateIDRequest{Channel: x.events, PS: abi.PSTCP}
	listener := x.handle(abi.CMCreateID, create)
	us := control.AddrFrom4([4]byte{198, 18, 0, 1}, 7000)
	x.ask(abi.CMBind, abi.CMBindRequest{ID: listener, Addr: us})
	x.ask(abi.CMListen, abi.CMValueRequest{ID: listener, Value: 4})
	cq := x.handle(abi.CreateCQ, abi.CreateCQRequest{Context: device, CQE: 16})
	plain := abi.CreateQPRequest{PD: pd, QPType: abi.QPTypeRC, SendCQ: cq, RecvCQ: cq,
		Cap: abi.QPCap{MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1}}
	param := abi.CMParam{ResponderResources: 1, InitiatorDepth: 1, RNRRetryCount: 7, PrivateDataLen: 3}
	for _, accepted := range []bool{true, false} {
		id := x.handle(abi.CMCreateID, create)
		x.ask(abi.CMResolveAddr, abi.CMResolveAddrRequest{ID: id, TimeoutMS: 1000, Dst: us})
		x.event()
		x.ask(abi.CMSetOption, abi.CMSetOptionRequest{ID: id, OptName: 0, Value: 8})
		x.ask(abi.CMResolveRoute, abi.CMValueRequest{ID: id, Value: 1000})
		x.event()
		param.QP = x.pair(plain)[0]
		x.ask(abi.CMConnect, abi.CMConnRequest{ID: id, Param: param})
		child := x.event().Child
		if !accepted {
			param.QP = 0
			x.ask(abi.CMReject, abi.CMConnRequest{ID: child, Param: param})
			x.event()
			break
		}
		param.QP = x.pair(plain)[0]
		x.ask(abi.CMAccept, abi.CMConnRequest{ID: child, Param: param})
		x.event()
		x.event()
		x.ask(abi.CMDisconnect, abi.HandleMessage{Handle: id})
		x.event()
		x.event()
		again := x.handle(abi.CMCreateChannel, abi.Header{})
		x.ask(abi.CMMigrateID, abi.CMValueRequest{ID: id, Value: again})
		x.ask(abi.CMWakeChannel, abi.HandleMessage{Handle: again})
	}
}

// destroy destroys every object, the newest first. Others may stand in the way of some, so it tries
// again as long as one is destroyed.
func (x *mutated) destroy() {
	for idle := 0; idle < 2 && len(x.made) > 0 && !x.dead; { // the request that fails may be the changed one
		idle++
		x.hear()
		x.detach()
		for i := len(x.made) - 1; i >= 0; i-- {
			if i < len(x.made) { // a changed request may have destroyed another
				answer := x.ask(x.made[i].undo, abi.HandleMessage{Handle: x.made[i].handle})
				if answer != nil && statusOf(answer) == 0 {
					idle = 0
				}
			}
		}
	}
}

// witness is a well-behaved program, whose objects must stay what they are.
type witness struct {
	*mutated
	pair  uint32
	state []byte
}

func newWitness(t *testing.T, r *running, f *files) *witness {
	w := &witness{mutated: &mutated{program: newProgram(t, r), r: r, at: -1, files: f}}
	w.ask(abi.Hello, abi.HelloRequest{ABIVersion: abi.Version})
	device := w.handle(abi.OpenDevice, abi.OpenDeviceRequest{})
	w.queues(device, w.handle(abi.AllocPD, abi.HandleMessage{Handle: device}))
	for _, m := range w.made {
		if m.undo == abi.DestroyQP && w.pair == 0 {
			w.pair = m.handle
		}
	}
	return w
}

func (w *witness) query() []byte {
	return bytes.Clone(w.send(encode(abi.QueryQP, abi.HandleMessage{Handle: w.pair}), nil))
}

// mutate makes the exchange with one change.
func mutate(t *testing.T, r *running, w *witness, i, k int, how when) {
	had := r.holds()
	x := &mutated{program: newProgram(t, r), r: r, at: i, way: k, when: how, files: w.files}
	x.run()
	x.destroy()
	if x.missed != nil {
		x.missed()
		x.destroy()
	}
	if !x.dead && len(x.made) > 0 {
		t.Errorf("objects that can't be destroyed: %v", x.made)
	}
	x.leave()
	await(t, "after the program", had, r.holds)
	if !bytes.Equal(w.query(), w.state) {
		t.Error("a queue pair of another program has changed")
	}
}

// TestMutations changes each field of each request, its length, type and descriptors, in the state
// that the request is for and when all is over. urdmad answers every request; what it refuses has
// changed nothing; the program can destroy all that it has made; and nothing is left of it, nor
// has another program lost anything.
func TestMutations(t *testing.T) {
	r := start(t)
	f := &files{self: open(t, "/proc/self/mem"), shared: file(t), domain: file(t)}
	defer f.close()
	nothing := r.holds()
	w := newWitness(t, r, f)
	had := r.holds()
	type request struct {
		kind abi.Type
		ways []string
	}
	var requests []request
	x := &mutated{program: newProgram(t, r), r: r, at: -1, files: f}
	x.mutants = func(_ int, kind abi.Type, q any) {
		var names []string
		for _, m := range mutants(kind, q) {
			names = append(names, m.name)
		}
		requests = append(requests, request{kind, names})
	}
	x.strict = true
	x.run()
	x.strict = false
	x.destroy()
	x.leave()
	await(t, "after the exchange without a change", had, r.holds)
	w.state = w.query()
	if len(x.made) > 0 || t.Failed() {
		t.Fatalf("the exchange itself goes wrong; left are %v", x.made)
	}
	tries, stride, seen := 0, mutationStride(), map[abi.Type]int{}
	for i, q := range requests {
		if seen[q.kind]++; seen[q.kind] > 3 { // the first of a kind stand for the others
			continue
		}
		for k, name := range q.ways {
			for _, how := range []when{instead, before, behind, late, other} {
				if tries++; tries%stride != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%d %v %s, %s", i, q.kind, name, how), func(t *testing.T) { mutate(t, r, w, i, k, how) })
				if t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d requests, %d changes to them", len(requests), tries)
	w.destroy()
	if w.leave(); len(w.made) > 0 {
		t.Errorf("the other program has lost something: left are %v", w.made)
	}
	await(t, "after all programs", nothing, r.holds)
	await(t, "connections after all programs", 0, func() (n int) { // refusals are remembered for seconds
		r.server.Workers[0].Do(func() { n = r.server.Workers[0].CM.Len() })
		return n
	})
}
