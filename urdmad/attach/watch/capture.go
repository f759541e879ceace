package watch

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"urdma/urdmad/attach/tap"
	"urdma/urdmad/control"
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/control/objects"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// Limits of concurrent captures, each of which costs the poll loop a copy of every frame. The
// last place is reserved for administrators; the one before is not given to a user who has all
// the others.
const (
	maxCaptures     = 4
	maxUserCaptures = maxCaptures - 2
)

// maxOthersRing is the largest ring, in bytes, of a user who does not see all clients.
const maxOthersRing = 16 << 20

// capture is one session's capture at one worker. Its methods run on that worker's thread.
type capture struct {
	devices int
	w       *worker
	viewer  *account.Owner
	filter  abi.CaptureRequest
	to      *captureRing
	begun   []ring.Begun // a sent frame begins and ends within a received one
}

// captureRing is the ring to which a session's captures at all workers write.
type captureRing struct {
	sync.Mutex
	memory *memfd.Shared
	ring   ring.CaptureWriter
}

// captureFlags are the known flags.
const captureFlags = abi.CaptureAll | abi.CaptureEvents | abi.CaptureChanges | abi.CapturePast

// check returns an error if the parameters of a capture are invalid.
func (v *Watch) check(x *control.Session, m *abi.CaptureRequest) error {
	switch {
	case len(v.capturesOf(x)) > 0:
		return fmt.Errorf("watch: the session has a capture: %w", syscall.EBUSY)
	case m.Device != abi.NoDevice && int64(m.Device) >= int64(len(v.s.Devices)):
		return fmt.Errorf("watch: device %d, there are %d: %w", m.Device, len(v.s.Devices), syscall.ENODEV)
	case m.Host.Family != syscall.AF_UNSPEC && m.Host.Family != syscall.AF_INET && m.Host.Family != syscall.AF_INET6:
		return fmt.Errorf("watch: capture of address family %d, urdmad speaks IPv4 and IPv6: %w",
			m.Host.Family, syscall.EAFNOSUPPORT)
	case m.Flags&^captureFlags != 0:
		return fmt.Errorf("watch: capture flags %#x, known: %#x: %w", m.Flags, captureFlags, syscall.EINVAL)
	}
	return nil
}

func (v *Watch) capture(x *control.Session, m *abi.CaptureRequest, r *control.Reply) error {
	if err := v.check(x, m); err != nil {
		return err
	}
	if !x.Owner.Admin {
		m.RingBytes = min(m.RingBytes, maxOthersRing)
	}
	layout := ring.CaptureLayout(m.RingBytes)
	memory, err := memfd.New("urdma-capture", int(layout.DataOffset+layout.DataBytes))
	if err != nil {
		return fmt.Errorf("%w: %w", err, syscall.ENOMEM)
	}
	to := &captureRing{memory: memory}
	to.ring.Init(memory.Mem, &layout)
	*r = control.Respond(&layout, memory.FD)
	if m.Flags&abi.CapturePast != 0 {
		v.capturePast(x, m, to)
		r.Done = memory.Close
		return nil
	}
	if err := v.begin(x, m, to); err != nil {
		memory.Close()
		return err
	}
	v.s.Log.Info("capture begins", "pid", x.Owner.PID, "uid", x.Owner.UID, "ring_bytes", layout.DataBytes)
	r.Done = memory.CloseFD
	return nil
}

// capturePast writes the events of flight recorders to the ring.
func (v *Watch) capturePast(x *control.Session, m *abi.CaptureRequest, to *captureRing) {
	x.SnapshotLock().Lock()
	defer x.SnapshotLock().Unlock()
	c := &capture{viewer: &x.Owner, filter: *m, to: to}
	for _, e := range v.past(c) {
		c.put(&e.TraceEvent, e.Text, e.TimeNs)
	}
}

// begin starts a session's captures at all workers.
func (v *Watch) begin(x *control.Session, m *abi.CaptureRequest, to *captureRing) (err error) {
	var all []*capture
	for i, s := range v.s.Workers { // all workers have the same captures, so checking the first is enough
		c := &capture{devices: len(v.s.Devices), w: v.workers[s], viewer: &x.Owner, filter: *m, to: to}
		s.Do(func() {
			if i == 0 {
				err = c.w.captureRoom(&x.Owner)
			}
			if err == nil {
				c.w.captures = append(c.w.captures, c)
				if m.Flags&abi.CaptureChanges == 0 {
					c.w.tap.Add(c)
				}
				c.w.capturesChanged()
			}
		})
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	v.mu.Lock()
	v.captures[x] = all
	v.mu.Unlock()
	return nil
}

// capturesOf returns a session's captures.
func (v *Watch) capturesOf(x *control.Session) []*capture {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.captures[x]
}

// captureRoom returns an error if there is no room for another capture; on the worker's thread.
func (w *worker) captureRoom(o *account.Owner) error {
	own := 0
	for _, c := range w.captures {
		if c.viewer.UID == o.UID {
			own++
		}
	}
	switch running := len(w.captures); {
	case running >= maxCaptures, running >= maxCaptures-1 && !o.Admin:
		return fmt.Errorf("watch: %d captures run already: %w", running, syscall.EBUSY)
	case own >= maxUserCaptures && !o.Admin:
		return fmt.Errorf("watch: %d captures of user %d run already: %w", own, o.UID, syscall.EBUSY)
	}
	return nil
}

func (v *Watch) captureStop(x *control.Session, _ *abi.Header, _ *control.Reply) error {
	if len(v.capturesOf(x)) == 0 {
		return syscall.EINVAL
	}
	v.endCapture(x)
	return nil
}

// endCapture ends a session's captures, also when the session has ended.
func (v *Watch) endCapture(x *control.Session) {
	all := v.capturesOf(x)
	if len(all) == 0 {
		return
	}
	for _, c := range slices.Backward(all) { // the first worker decides whether there is room, so it comes last
		c.w.Do(func() {
			c.w.tap.Remove(c)
			c.w.captures = slices.DeleteFunc(c.w.captures, func(other *capture) bool { return other == c })
			c.w.capturesChanged()
		})
	}
	all[0].to.memory.Close()
	v.mu.Lock()
	delete(v.captures, x)
	v.mu.Unlock()
	v.s.Log.Info("capture ends", "pid", x.Owner.PID, "uid", x.Owner.UID)
}

// Begin implements tap.Viewer.
func (c *capture) Begin(s *tap.Sight) bool {
	now := time.Now()
	wanted := c.wants(s)
	c.to.Lock()
	defer c.to.Unlock()
	defer func() { c.to.ring.Spend(time.Since(now)) }()
	if !wanted {
		return false
	}
	kept := s.Frame
	if limit := c.filter.SnapBytes; limit > 0 && int64(len(kept)) > int64(limit) {
		kept = kept[:limit]
	}
	record := abi.CaptureRecord{Kind: abi.CaptureFrame, TimeNs: uint64(now.UnixNano()),
		FrameBytes: uint32(s.Length), Device: uint32(s.Dev)}
	record.QPN, record.OtherQPN = numberOf(s.Conn), numberOf(s.Other)
	if s.Conn == nil && s.Other == nil {
		n, _ := namedPair(s)
		record.QPN = uint32(n)
	}
	switch {
	case s.Local:
		record.Device += uint32(c.devices)
	case s.Out:
		record.Direction = abi.CaptureOut
	default:
		record.Direction = abi.CaptureIn
	}
	b, ok := c.to.ring.Begin(record, kept)
	if ok {
		c.begun = append(c.begun, b)
	}
	return ok
}

// End implements tap.Viewer.
func (c *capture) End(note string) {
	last := len(c.begun) - 1
	c.to.Lock()
	defer c.to.Unlock()
	c.to.ring.End(c.begun[last], note)
	c.begun = c.begun[:last]
}

// wants applies the filter and the viewer's rights to a frame.
func (c *capture) wants(s *tap.Sight) bool {
	f := &c.filter
	if s.Foreign && (f.Flags&abi.CaptureAll == 0 || !c.viewer.Admin) ||
		f.Device != abi.NoDevice && f.Device != uint32(s.Dev) {
		return false
	}
	if f.QPN != 0 && !serves(s, f.QPN) {
		return false
	}
	if f.PID != 0 && !c.anyOwner(s, func(o *account.Owner) bool { return o.PID == int(f.PID) }) {
		return false
	}
	if !c.viewer.Admin && !c.anyOwner(s, c.viewer.Sees) {
		return false
	}
	return c.hostMatches(s)
}

// numberOf returns the number of an end's queue pair, 0 if it has none.
func numberOf(end *qp.Connection) uint32 {
	if end == nil || end.QP == nil {
		return 0
	}
	return end.QP.QPN
}

func serves(s *tap.Sight, qpn uint32) bool {
	for _, end := range [2]*qp.Connection{s.Conn, s.Other} {
		if numberOf(end) == qpn {
			return true
		}
	}
	n, ok := namedPair(s)
	return ok && uint32(n) == qpn
}

// anyOwner reports whether fn returns true for the owner of an end of the frame's connection, of
// its listener, or of the queue pair that it names.
func (c *capture) anyOwner(s *tap.Sight, fn func(*account.Owner) bool) bool {
	if n, ok := namedPair(s); ok {
		return c.ownerOfNumber(n, fn)
	}
	for _, id := range c.ids(s) {
		if id == nil {
			continue
		}
		if x, ok := id.Owner.(objects.Owner); ok && fn(&x.Owner) {
			return true
		}
	}
	return c.anyServed(s.Conn, fn) || c.anyServed(s.Other, fn)
}

// anyServed is anyOwner for an end without an id: it uses the owner of the queue pair.
func (c *capture) anyServed(end *qp.Connection, fn func(*account.Owner) bool) bool {
	switch v := connect.PairOf(end); {
	case v != nil: // even if the connection has left the queue pair
		return c.ownerOfClient(connect.PairQP(v).Client, fn)
	case end == nil || end.QP == nil:
		return false
	}
	return c.ownerOfClient(end.QP.Client, fn)
}

// ids returns the rdma_cm ids that a frame concerns.
func (c *capture) ids(s *tap.Sight) [2]*cm.ID {
	switch {
	case s.Conn != nil:
		return [2]*cm.ID{connect.IDOf(s.Conn), connect.IDOf(s.Other)}
	case s.Local: // a handshake
		return [2]*cm.ID{c.w.CM.ListenerAt(s.Our), c.w.CM.ListenerAt(s.Peer)}
	case s.Our.Port() != 0:
		return [2]*cm.ID{c.w.CM.ListenerAt(s.Our)}
	}
	return [2]*cm.ID{}
}

// hostMatches reports whether an end of the frame's connection matches the filter, by UDP port
// numbers or by rdma_cm's. The two differ on the side that has connected.
func (c *capture) hostMatches(s *tap.Sight) bool {
	want := captureHost(&c.filter)
	if isAt(s.Our, want) || isAt(s.Peer, want) {
		return true
	}
	id := connect.IDOf(s.Conn)
	if id == nil {
		return false
	}
	v := id.View()
	return isAt(v.Local, want) || isAt(v.Peer, want)
}

// isAt reports whether an end has an address and port number; 0.0.0.0 and 0 match any.
func isAt(end, want netip.AddrPort) bool {
	return (want.Addr().IsUnspecified() || end.Addr() == want.Addr()) && (want.Port() == 0 || end.Port() == want.Port())
}

// captureHost returns the end to which a capture is limited.
func captureHost(m *abi.CaptureRequest) netip.AddrPort {
	a := netip.IPv4Unspecified()
	if m.Host.Family != syscall.AF_UNSPEC {
		a = m.Host.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.AddrPortFrom(a, m.Host.Port())
}
