package roce_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// managementHeads is the length of the headers in front of a message of communication management.
const managementHeads = roce.BTHLen + 8

// change is a change to a field of a message.
type change struct {
	name string
	do   func(m *ibcm.Message)
}

// changes are the changes to each field, and to the message type.
func changes() (list []change) {
	add := func(name string, value any, do func(m *ibcm.Message)) {
		list = append(list, change{fmt.Sprintf("%s %v", name, value), do})
	}
	add("nothing", "", func(*ibcm.Message) {})
	for kind := ibcm.REQ; kind <= ibcm.APR; kind++ {
		add("kind", kind, func(m *ibcm.Message) { m.Kind = kind })
	}
	for _, n := range []uint32{0, 1, math.MaxUint32} {
		add("Local", n, func(m *ibcm.Message) { m.Local = n })
		add("Remote", n, func(m *ibcm.Message) { m.Remote = n })
		add("QPN", n, func(m *ibcm.Message) { m.QPN, m.Target = wire.QPN(n&0xffffff), wire.QPN(n&0xffffff) })
		add("PSN", n, func(m *ibcm.Message) { m.PSN = roce.PSN(n & 0xffffff) })
		add("TID", n, func(m *ibcm.Message) { m.TID = uint64(n) })
	}
	add("both IDs", "swapped", func(m *ibcm.Message) { m.Local, m.Remote = m.Remote, m.Local })
	for _, n := range []uint8{0, 1, 2, 5, 15, 255} {
		add("Responder", n, func(m *ibcm.Message) { m.Responder = n })
		add("Initiator", n, func(m *ibcm.Message) { m.Initiator = n })
		add("PathMTU", n, func(m *ibcm.Message) { m.PathMTU = n & 15 })
		add("RNRRetry", n, func(m *ibcm.Message) { m.RNRRetry = n & 7 })
		add("Timeout", n, func(m *ibcm.Message) { m.Timeout, m.AckTimeout = n&31, n&31 })
		add("Retries", n, func(m *ibcm.Message) { m.Retries = n })
		add("TrafficClass", n, func(m *ibcm.Message) { m.TrafficClass = n })
		add("Reason", n, func(m *ibcm.Message) { m.Reason = ibcm.Reason(n) })
		add("Refused", n, func(m *ibcm.Message) { m.Refused = ibcm.Refused(n & 3) })
		add("Status", n, func(m *ibcm.Message) { m.Status = n })
		add("Transport", n, func(m *ibcm.Message) { m.Transport = n & 15 })
	}
	add("XRC", "", func(m *ibcm.Message) { m.Transport = ibcm.XRC })
	add("SRQ", "", func(m *ibcm.Message) { m.SRQ = !m.SRQ })
	add("partition", "", func(m *ibcm.Message) { m.PKey = 1 })
	for _, s := range []ibcm.ServiceID{0, ibcm.TCPService(0), ibcm.TCPService(7001), ibcm.UDPService(7000),
		ibcm.TCPService(7000), 1 << 63} {
		add("service", s, func(m *ibcm.Message) { m.Service = s })
	}
	private := func(name string, do func(b []byte)) {
		add("private data", name, func(m *ibcm.Message) {
			if m.Private = bytes.Clone(m.Private); len(m.Private) >= ibcm.HeaderLen {
				do(m.Private)
			}
		})
	}
	private("zero", func(b []byte) { clear(b) })
	private("of version 1", func(b []byte) { b[0] = 0x10 })
	private("of IPv4", func(b []byte) { b[1] = 4 << 4 })
	private("of IPv6", func(b []byte) { b[1] = 6 << 4 })
	private("of no family", func(b []byte) { b[1] = 5 << 4 })
	private("another address", func(b []byte) { b[16]++ })
	private("another port", func(b []byte) { binary.BigEndian.PutUint16(b[2:], 0) })
	return list
}

// management is programs that use rdma_cm, and a change to one message of communication management.
type management struct{ *enginetest.Managed }

func newManagement(t *testing.T, six bool) *management {
	return &management{enginetest.NewManaged(t, enginetest.Options{RoCE: true, IPv6: six})}
}

// inject lets a message arrive with a change.
func (m *management) inject(frame []byte, c *change) {
	out := bytes.Clone(frame)
	var f wire.Frame
	if err := f.Parse(out, len(out)); err != nil {
		m.T.Fatal(err)
	}
	body := out[f.PayloadOff+managementHeads:]
	var msg ibcm.Message
	if err := msg.Parse(body); err != nil {
		m.T.Fatal(err)
	}
	c.do(&msg)
	room := map[ibcm.Kind]int{ibcm.REQ: ibcm.MaxPrivate + ibcm.HeaderLen, ibcm.REP: ibcm.MaxReply,
		ibcm.REJ:         ibcm.MaxReject,
		ibcm.SIDRRequest: ibcm.MaxServicePrivate + ibcm.HeaderLen, ibcm.SIDRReply: ibcm.MaxServiceReply}
	private := bytes.Clone(msg.Private)
	msg.Private = private[:min(len(private), room[msg.Kind])]
	if err := msg.Put(body[:ibcm.Len]); err != nil {
		m.T.Fatal(err)
	}
	var sums roce.Sums
	sums.Put(out[wire.EthernetLen:f.PayloadOff], out[f.PayloadOff:])
	if f.Type == wire.EtherTypeIPv6 {
		wire.SetUDP6Checksum(out)
	} else {
		wire.SetUDPChecksum(out)
	}
	m.Inject(out)
}

// messages calls see for each message, numbered from 0.
func (m *management) messages(see func(i int, frame []byte) (lost bool)) {
	n := -1
	watch(m.World, func(frame, _ []byte) bool {
		if _, ok := managed(frame); !ok {
			return false
		}
		n++
		return see(n, frame)
	})
}

// end is End; no connection may be left, either.
func (m *management) end() {
	m.T.Helper()
	m.End()
	for _, h := range []*enginetest.Host{m.A, m.B} {
		if n := h.Engine.RoCE.Len(); n > 0 {
			m.T.Errorf("host %s: %d connections are left", h.Name, n)
		}
	}
}

// TestManagementMutations changes each field of each message of communication management, over IPv4 and IPv6. The
// changed message arrives instead of the message, right after it, or at the end.
func TestManagementMutations(t *testing.T) {
	t.Run("IPv4", func(t *testing.T) { managementMutations(t, false) })
	t.Run("IPv6", func(t *testing.T) { managementMutations(t, true) })
}

func managementMutations(t *testing.T, six bool) {
	var kinds []ibcm.Kind
	m := newManagement(t, six)
	m.messages(func(_ int, frame []byte) bool {
		got, _ := managed(frame)
		kinds = append(kinds, got.Kind)
		return false
	})
	m.Run()
	if m.end(); t.Failed() || !m.Well() {
		t.Fatalf("without a change: %+v", [...]bool{m.Connected, m.Rejected, m.Answered, m.Sent})
	}
	t.Logf("messages %v", kinds)
	tries := 0
	for i, kind := range kinds {
		for k, c := range changes() {
			for _, when := range []string{"instead", "behind", "late"} {
				if tries++; os.Getenv("URDMA_LONG") == "" && tries%mutationStride != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%d %#x/%d %s", i, uint16(kind), k, when), func(t *testing.T) {
					m := newManagement(t, six)
					var message []byte
					m.messages(func(n int, frame []byte) (lost bool) {
						if n != i {
							return false
						}
						message = bytes.Clone(frame)
						if when != "late" {
							m.inject(message, &c)
						}
						return when == "instead"
					})
					m.Run()
					if when == "late" && message != nil {
						m.inject(message, &c)
						m.Live(time.Second)
					}
					if m.end(); t.Failed() {
						t.Error(c.name)
					}
				})
			}
		}
	}
}
