package control

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
	"urdma/urdmad/control/process"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// errVersion is answered together with our version, so that the client can report both.
var errVersion = fmt.Errorf("control: the client speaks another version of the protocol: %w", syscall.EPROTO)

// Limits common to all devices.
const (
	maxQPWR   = 16384
	maxCQE    = 1 << 20
	maxInline = 2048 // upper limit; a queue that asks for less has smaller slots
	// CompVectors: the worker raises the completion events of all its queues.
	CompVectors = 1
)

// clientAmounts are the resources of a client without objects: the mapping of the doorbells, and
// descriptors of the connection, the kick socket and /proc/self/mem.
var clientAmounts = account.Amounts{account.Clients: 1, account.Mappings: 1, account.Descriptors: 3}

func (x *Session) hello(m *abi.HelloRequest, r *Reply) error {
	if x.ready {
		return fmt.Errorf("control: a second HELLO: %w", syscall.EINVAL)
	}
	resp := abi.HelloResponse{ABIVersion: abi.Version, NumDevices: uint32(len(x.s.Devices)),
		DoorbellBytes: uint32(abi.Size[abi.Doorbells]()), Workers: 1}
	copy(resp.SysfsPath[:len(resp.SysfsPath)-1], x.s.Sysfs)
	*r = Respond(&resp)
	if m.ABIVersion != abi.Version {
		return errVersion
	}
	if m.Flags&^abi.HelloPool != 0 {
		return fmt.Errorf("control: HELLO with flags %#x, known: %#x: %w", m.Flags, abi.HelloPool, syscall.EINVAL)
	}
	x.name = process.Name(m.Command[:], m.PID)
	if !x.greeted { // else an earlier HELLO took them and then failed
		if err := x.Take(&clientAmounts); err != nil {
			return err
		}
		x.greeted = true
		x.s.served(x)
		x.w = x.s.workerFor(x.Owner.UID)
	}
	theirs, err := x.connect()
	if err != nil {
		x.disconnect()
		return err
	}
	x.Owner.Name = process.CString(m.Command[:])
	x.ReadCommandLine()
	x.client = &engine.Client{Client: qp.Client{ID: x.id, Name: x.name, User: x.user(), Space: x.space,
		Fault: func(error) { go x.conn.Close() }}}
	if m.Flags&abi.HelloPool != 0 {
		x.pool = &memfd.Pool{
			Take: func(bytes int) error { return x.Take(fileAmounts(bytes)) },
			Give: func(bytes int) { x.Give(fileAmounts(bytes)) },
		}
	}
	x.w.Turn(func() { // the worker must not fall asleep without telling this client
		x.w.Engine.AddClient(x.client, x.bells.Mem)
		x.Owner.Since = x.w.Engine.Now()
		x.w.attach(x)
	})
	x.ready = true
	x.s.Log.Debug("client connected", "client", x.name)
	r.FDs = []int{x.bells.FD, theirs}
	r.Done = func() {
		_ = unix.Close(theirs) // the client has its copy
		x.bells.CloseFD()
	}
	return nil
}

// workerFor chooses the worker of a user's new client, and counts the client. If the user's
// clients share XRC domains, it is the worker of those domains, because clients of other workers
// cannot join them. Otherwise it is the worker with the fewest clients, in turn if there are
// several.
func (s *Server) workerFor(uid int) *Worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.Domains.workerOf(uid)
	if w == nil {
		inTurn := slices.Concat(s.Workers[s.turn:], s.Workers[:s.turn])
		w = slices.MinFunc(inTurn, func(a, b *Worker) int { return cmp.Compare(a.clients.Load(), b.clients.Load()) })
		s.turn = (slices.Index(s.Workers, w) + 1) % len(s.Workers)
	}
	w.clients.Add(1)
	return w
}

// user returns the name of the client's user, with its container if it runs in one.
func (x *Session) user() string {
	if x.Owner.UID == account.Nobody || x.Owner.Realm == "" {
		return ""
	}
	return fmt.Sprintf("%d in %s", x.Owner.UID, x.Owner.Realm)
}

// connect creates the memory and the kick socket that a client shares with the worker, and
// returns the client's end of the socket.
func (x *Session) connect() (theirs int, err error) {
	x.space = mem.NewSpace(x.checkedMem())
	if x.Owner.Admin { // an admin can stop urdmad anyway
		x.space.SetDirect()
	}
	x.space.SetBudget(account.MappingBudget{Account: &x.Account})
	if x.bells, err = memfd.New("urdma-doorbells", abi.Size[abi.Doorbells]()); err != nil {
		return -1, err
	}
	ours, theirs, err := events.Pair()
	if err != nil {
		return -1, err
	}
	_ = unix.SetNonblock(ours, true) // the worker reads it until it is empty
	if err := x.w.WatchKick(ours); err != nil {
		_, _ = unix.Close(ours), unix.Close(theirs)
		return -1, err
	}
	x.kick = ours
	return theirs, nil
}

// disconnect undoes connect, also a partial one.
func (x *Session) disconnect() {
	if x.kick >= 0 {
		_ = x.w.UnwatchKick(x.kick)                                // a hung-up socket has left the set already
		x.closer.Close(os.NewFile(uintptr(x.kick), "kick socket")) // as conn.Close does
		x.kick = -1
	}
	x.bells.Close()
	x.bells = nil
	if x.space != nil {
		x.endFallback()
		x.space.Close()
		x.endMappings()
	}
}

// NewEvents takes the resources of an object of kind r that has an event socket, makes the socket
// and puts the client's end into answer.
func (x *Session) NewEvents(r account.Resource, answer *Reply) (*events.Socket, *account.Amounts, error) {
	bill := &account.Amounts{account.Descriptors: 1}
	bill[r] = 1
	if err := x.Take(bill); err != nil {
		return nil, nil, err
	}
	ours, theirs, err := events.Pair()
	if err != nil {
		x.Give(bill)
		return nil, nil, err
	}
	answer.FDs = append(answer.FDs, theirs)
	answer.Done = func() { _ = unix.Close(theirs) } // the client has its copy
	return events.NewSocket(ours, &x.unread), bill, nil
}

// Device returns a device or port by its number.
func (x *Session) Device(n uint32) (*Device, error) {
	if n >= uint32(len(x.s.Devices)) {
		return nil, fmt.Errorf("control: device %d, there are %d: %w", n, len(x.s.Devices), syscall.ENODEV)
	}
	return &x.s.Devices[n], nil
}

// ShownProfile returns the profile that a client asks for, personality.Own if it asks for a transport, and otherwise
// the configured one.
func (s *Server) ShownProfile(asked *abi.Shown) (*personality.Profile, error) {
	name := process.CString(asked.Profile[:])
	if asked.Transport == abi.TransportDefault {
		name = cmp.Or(name, s.Profile)
	}
	p := personality.ProfileNamed(name)
	if p == nil {
		return nil, fmt.Errorf("control: no profile has the name %q: %w", name, syscall.EINVAL)
	}
	return p, nil
}

// shown returns as what a client shows a device.
func (s *Server) shown(asked *abi.Shown, d *Device) (*personality.Profile, *personality.Personality, error) {
	profile, err := s.ShownProfile(asked)
	shown := d.Personality
	switch {
	case err != nil:
		return nil, nil, err
	case profile.Transport != "":
		shown = personality.Named(profile.Transport)
	case asked.Transport != abi.TransportDefault:
		shown = personality.Numbered(asked.Transport)
	}
	if shown == nil {
		return nil, nil, fmt.Errorf("control: no transport has the number %d: %w", asked.Transport, syscall.EINVAL)
	}
	return profile, shown, nil
}

func (x *Session) queryDevice(m *abi.QueryDeviceRequest, r *Reply) error {
	d, err := x.Device(m.Device)
	if err != nil {
		return err
	}
	profile, shown, err := x.s.shown(&m.Shown, d)
	if err != nil {
		return err
	}
	limits, most, at := x.s.Current(), x.Limits(), d.At()
	first := x.s.First(int(m.Device))
	v := abi.Device{Addr: x.s.Addr(netip.AddrPortFrom(at.Address.Addr(), 0), int(m.Device)),
		PrefixLength: uint32(at.Address.Bits()), MAC: d.MAC,
		MTU: uint32(at.MTU), MaxQP: x.mapped(x.Account.Pairs(d.MaxQP), 2), MaxQPWR: most.MaxQPWR,
		MaxSGE: most.MaxSGE, MaxSGERd: most.MaxSGERd, MaxInline: most.MaxInline, MaxCQ: x.mapped(limits.CompletionQueues, 1),
		MaxCQE: most.MaxCQE, MaxMR: uint32(limits.MemoryRegions), MaxPD: uint32(limits.ProtectionDomains),
		MaxRdAtom: most.MaxRdAtom, NumCompVectors: CompVectors, MaxMRSize: limits.RegisteredBytes,
		MaxMsg: qp.MaxMessage, MaxDatagram: d.MaxDatagram(), MaxSRQ: x.mapped(limits.SharedReceiveQueues, 1),
		MaxSRQWR:  most.MaxSRQWR,
		MaxSRQSGE: most.MaxSRQSGE, MaxMW: uint32(limits.MemoryRegions), PortNum: uint32(d.Number),
		NumPorts: uint32(x.s.Ports(first)), RawPackets: d.RawPackets}
	shown.Describe(&personality.Port{MAC: d.MAC, Addr: at.Address.Addr()}, &v)
	v.NodeGUIDBE = personality.GUID(x.s.Devices[first].MAC)
	profile.Describe(x.s.index(first), d.Of, x.s.Version, &v)
	if d.Link() {
		v.LinkUp = 1
	}
	*r = Respond(&v)
	return nil
}

// Limits returns the limits for the client that are the same on all devices, until its next call.
func (x *Session) Limits() *abi.Device {
	x.limits = abi.Device{MaxQPWR: maxQPWR, MaxSGE: qp.MaxSGE, MaxSGERd: qp.MaxSGE, MaxInline: maxInline, MaxCQE: maxCQE,
		MaxRdAtom: uint32(x.s.MaxReads),
		MaxSRQWR:  maxQPWR, MaxSRQSGE: qp.MaxSGE}
	x.s.limit(x, &x.limits)
	return &x.limits
}

// mapped returns how many objects that need a mapping a client can have if it has others mappings
// besides.
func (x *Session) mapped(most, others int) uint32 {
	if all := x.s.Current().Mappings; all != 0 {
		most = min(most, all-others)
	}
	return uint32(most)
}

// Addr converts an address for clients; dev is the device through which it is reached, or -1 for
// any.
func (s *Server) Addr(a netip.AddrPort, dev int) abi.Addr {
	v, _ := abi.AddrFrom(a) // errors are about zones, which no address of ours has
	if dev >= 0 && a.Addr().Is6() && a.Addr().IsLinkLocalUnicast() {
		v.ScopeID = s.Devices[dev].Scope
	}
	return v
}
