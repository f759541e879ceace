package nldev

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"urdma/inspect"
	"urdma/urdmad/control/account"
)

// Attributes of objects (enum rdma_nldev_attr).
const (
	attrSummary      = 15
	attrSummaryEntry = 16
	attrSummaryName  = 17
	attrSummaryCount = 18
	attrQP           = 19
	attrQPEntry      = 20
	attrQPN          = 21
	attrSQPSN        = 24
	attrType         = 26
	attrObjectState  = 27
	attrPID          = 28
	attrID           = 30
	attrIDEntry      = 31
	attrPortSpace    = 32
	attrLocal        = 33
	attrPeer         = 34
	attrCQ           = 35
	attrCQEntry      = 36
	attrDepth        = 37
	attrUsers        = 38
	attrMR           = 40
	attrMREntry      = 41
	attrRKey         = 42
	attrLKey         = 43
	attrStart        = 44
	attrLength       = 45
	attrPD           = 46
	attrPDEntry      = 47
	attrPDNumber     = 60
	attrCQNumber     = 61
	attrMRNumber     = 62
	attrIDNumber     = 63
	attrSRQ          = 88
	attrSRQEntry     = 89
	attrSRQNumber    = 90
)

// kind is a kind of object.
type kind struct {
	name                 string // in the summary
	table, entry, number uint16 // attributes: all objects, one of them, its number
	ofPort               bool   // not of the device
	// add adds the snapshot's objects.
	add func(s *inspect.Snapshot, add func(o *inspect.Object, number uint32, a attributes))
}

// kinds are all kinds of objects, by the command that lists them.
var kinds = map[uint16]kind{
	10: {"qp", attrQP, attrQPEntry, attrQPN, true, qps},
	11: {"cm_id", attrID, attrIDEntry, attrIDNumber, true, ids},
	12: {"cq", attrCQ, attrCQEntry, attrCQNumber, false, cqs},
	13: {"mr", attrMR, attrMREntry, attrMRNumber, false, mrs},
	14: {"pd", attrPD, attrPDEntry, attrPDNumber, false, pds},
	23: {"srq", attrSRQ, attrSRQEntry, attrSRQNumber, false, srqs},
}

// summarized are the commands of kinds in the order of a summary.
var summarized = []uint16{14, 12, 10, 11, 13, 23}

// snapshotTime bounds how long a program waits for urdmad's poll loop.
const snapshotTime = 9 * time.Second

// objects lists the objects of a kind, or counts all. A request that isn't a dump asks for one object.
func (c *Config) objects(r *request, k kind, who *account.Account) (list []attributes, err error) {
	devices, err := c.asked(r)
	if err != nil {
		return nil, err
	}
	who.SnapshotLock().Lock()
	defer who.SnapshotLock().Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTime)
	defer cancel()
	s, err := c.Snapshot(ctx, &who.Owner)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, unix.ETIMEDOUT)
	}
	for _, d := range devices {
		if k.add == nil {
			list = append(list, d.summary(s))
			continue
		}
		k.add(s, func(o *inspect.Object, number uint32, a attributes) {
			if d.has(s, o) && (r.dump() || r.number(k.number) == number) {
				list = d.object(list, r, &k, portOf(s, o), a.u32(k.number, number).u32(attrPID, uint32(o.PID)))
			}
		})
	}
	return list, nil
}

// object appends an object, unless another port's are asked for.
func (d *device) object(list []attributes, r *request, k *kind, port uint32, a attributes) []attributes {
	if k.ofPort && port != 0 {
		if r.has[attrPortIndex] != nil && r.number(attrPortIndex) != port {
			return list
		}
		a = a.u32(attrPortIndex, port)
	}
	if r.dump() {
		a = attributes(nil).nested(k.table, attributes(nil).nested(k.entry, a))
	}
	return append(list, append(d.identity(), a...))
}

// has reports whether an object is the device's: its Device is the name of the device, or of a port of it.
func (d *device) has(s *inspect.Snapshot, o *inspect.Object) bool {
	return o.Device == d.own || slices.ContainsFunc(s.Ports, func(p inspect.Port) bool {
		return p.Name == o.Device && p.Device == d.own
	})
}

// portOf returns the number of an object's port, 0 if it has none.
func portOf(s *inspect.Snapshot, o *inspect.Object) uint32 {
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Name == o.Device {
			return uint32(p.Number)
		}
	}
	return 0
}

func (d *device) summary(s *inspect.Snapshot) attributes {
	var a attributes
	for _, command := range summarized {
		k, count := kinds[command], uint64(0)
		k.add(s, func(o *inspect.Object, _ uint32, _ attributes) {
			if d.has(s, o) {
				count++
			}
		})
		a = a.nested(attrSummaryEntry, attributes(nil).text(attrSummaryName, k.name).u64(attrSummaryCount, count))
	}
	return d.identity().nested(attrSummary, a)
}

// types are the numbers of enum ib_qp_type.
var types = map[string]uint8{"RC": 2, "UC": 3, "UD": 4, "XRC_SEND": 9, "XRC_RECV": 10}

func qps(s *inspect.Snapshot, add func(*inspect.Object, uint32, attributes)) {
	for i := range s.QPs {
		q := &s.QPs[i]
		add(&q.Object, q.QPN, attributes(nil).u32(attrSQPSN, 0).u8(attrType, types[q.Type]).
			u8(attrObjectState, uint8(max(0, slices.Index(inspect.QPStates[:], q.State)))).
			u32(attrPDNumber, uint32(q.Domain)))
	}
}

func cqs(s *inspect.Snapshot, add func(*inspect.Object, uint32, attributes)) {
	for i := range s.CQs {
		q := &s.CQs[i]
		add(&q.Object, q.Handle, attributes(nil).u32(attrDepth, uint32(q.Depth)).u64(attrUsers, uint64(q.QPs)))
	}
}

func mrs(s *inspect.Snapshot, add func(*inspect.Object, uint32, attributes)) {
	for i := range s.Regions {
		m := &s.Regions[i]
		add(&m.Object, m.LKey, attributes(nil).u32(attrRKey, m.RKey).u32(attrLKey, m.LKey).u64(attrStart, m.Start).
			u64(attrLength, m.Length).u32(attrPDNumber, uint32(m.Domain)))
	}
}

func pds(s *inspect.Snapshot, add func(*inspect.Object, uint32, attributes)) {
	for i := range s.Domains {
		d := &s.Domains[i]
		add(&d.Object, uint32(d.Number), attributes(nil).u64(attrUsers, uint64(d.Regions+d.QPs)))
	}
}

func srqs(s *inspect.Snapshot, add func(*inspect.Object, uint32, attributes)) {
	const basic, xrc = 0, 1 // enum ib_srq_type
	for i := range s.SRQs {
		q := &s.SRQs[i]
		number, kind := q.Handle, uint8(basic)
		if q.Number != 0 {
			number, kind = q.Number, xrc
		}
		add(&q.Object, number, attributes(nil).u8(attrType, kind).u32(attrPDNumber, uint32(q.Domain)))
	}
}

// idStates are the numbers of the kernel's enum rdma_cm_state, by inspect.IDStates.
var idStates = map[string]uint8{"idle": 0, "bound": 7, "resolving": 1, "resolved": 2, "routed": 4, "connecting": 5,
	"requested": 5, "accepting": 5, "connected": 5, "ended": 6}

const (
	idListens = 8
	portSpace = 0x0106 // RDMA_PS_TCP
	portsUDP  = 0x0111 // RDMA_PS_UDP
)

func ids(s *inspect.Snapshot, add func(*inspect.Object, uint32, attributes)) {
	datagrams := map[uint32]bool{}
	for i := range s.QPs {
		datagrams[s.QPs[i].QPN] = s.QPs[i].Type == "UD"
	}
	for i := range s.Connections {
		c := &s.Connections[i]
		if c.Side == inspect.SideNumber {
			continue
		}
		space := uint32(portSpace)
		if datagrams[c.QPN] {
			space = portsUDP
		}
		a := attributes(nil).u8(attrObjectState, idStates[c.State]).u32(attrPortSpace, space).address(attrLocal, c.Local).
			address(attrPeer, c.Peer)
		if c.QPN != 0 {
			a = a.u32(attrQPN, c.QPN).u8(attrType, types["RC"])
		}
		add(&c.Object, c.Handle, a)
	}
	for i := range s.Listeners {
		l := &s.Listeners[i]
		add(&l.Object, l.Handle, attributes(nil).u8(attrObjectState, idListens).u32(attrPortSpace, portSpace).
			address(attrLocal, l.Local))
	}
}

// address appends an address and port number as struct sockaddr_storage; nothing for an empty one.
func (a attributes) address(kind uint16, s string) attributes {
	at, err := netip.ParseAddrPort(s)
	if err != nil {
		return a
	}
	var b [128]byte // struct __kernel_sockaddr_storage
	b[2], b[3] = byte(at.Port()>>8), byte(at.Port())
	if ip := at.Addr().AsSlice(); at.Addr().Is4() {
		native.PutUint16(b[:], unix.AF_INET)
		copy(b[4:], ip)
	} else {
		native.PutUint16(b[:], unix.AF_INET6)
		copy(b[8:], ip)
	}
	return a.bytes(kind, b[:])
}
