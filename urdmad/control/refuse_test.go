package control_test

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"urdma/urdmad/control"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// TestRefusedFields: what the ABI has room for and urdmad can't do yet is
// refused, not ignored.
func TestRefusedFields(t *testing.T) {
	_, c := startEquipped(t)
	const ctx, pd, cq, id = 1, 2, 4, 7
	six, err := abi.AddrFrom(netip.MustParseAddrPort("[2001:db8::1]:7471"))
	if err != nil {
		t.Fatal(err)
	}
	queue := func(q abi.CreateCQRequest) error {
		q.Context, q.CQE = ctx, 1
		_, err := call[abi.CreateCQRequest, abi.CQResponse](c, abi.CreateCQ, q)
		return err
	}
	pair := func(q abi.CreateQPRequest) error {
		q.PD, q.SendCQ, q.RecvCQ = pd, cq, cq
		if q.QPType == 0 {
			q.QPType = abi.QPTypeRC
		}
		_, err := call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP, q)
		return err
	}
	resolve := func(src, dst abi.Addr) error {
		_, err := call[abi.CMResolveAddrRequest, abi.CMBound](c, abi.CMResolveAddr,
			abi.CMResolveAddrRequest{ID: id, Src: src, Dst: dst})
		return err
	}
	shown := func(transport uint32) error {
		_, err := call[abi.QueryDeviceRequest, abi.Device](c, abi.QueryDevice, abi.QueryDeviceRequest{Shown: abi.Shown{Transport: transport}})
		return err
	}
	modify := func(mask, state uint32) error {
		_, err := call[abi.ModifyQPRequest, abi.QueryQPResponse](c, abi.ModifyQP,
			abi.ModifyQPRequest{Handle: 5, Mask: mask, Attr: abi.QPAttr{QPState: state}})
		return err
	}
	four := control.AddrFrom4([4]byte{127, 0, 0, 1}, 1)
	_, bind := call[abi.CMBindRequest, abi.CMBound](c, abi.CMBind, abi.CMBindRequest{ID: id, Addr: six})
	_, capture := call[abi.CaptureRequest, abi.CaptureResponse](c, abi.Capture,
		abi.CaptureRequest{Device: abi.NoDevice, Host: abi.Addr{Family: 77}})
	for _, x := range []struct {
		what string
		got  error
		want error
	}{
		{"no transport", shown(abi.TransportRoCE + 1), syscall.EINVAL},
		{"comp_vector 0", queue(abi.CreateCQRequest{}), nil},
		{"comp_vector 1", queue(abi.CreateCQRequest{CompVector: 1}), syscall.EINVAL},
		{"a queue pair", pair(abi.CreateQPRequest{}), nil},
		{"UD", pair(abi.CreateQPRequest{QPType: 4}), nil},
		{"a type that is none", pair(abi.CreateQPRequest{QPType: 5}), syscall.EOPNOTSUPP},
		{"srq", pair(abi.CreateQPRequest{SRQ: 1}), syscall.ENOENT},
		{"xrcd", pair(abi.CreateQPRequest{XRCD: 1}), syscall.EOPNOTSUPP},
		{"create_flags", pair(abi.CreateQPRequest{CreateFlags: 2}), syscall.EOPNOTSUPP},
		{"source_qpn", pair(abi.CreateQPRequest{SourceQPN: 1}), syscall.EOPNOTSUPP},
		{"RTR without its attributes", modify(abi.QPMaskState|1<<20, abi.QPSRTR), syscall.EINVAL},
		{"a state that can't be had", modify(abi.QPMaskState, abi.QPSSQD), syscall.EINVAL},
		{"binding to an IPv6 address of nobody's", bind, syscall.ENODEV},
		{"resolving IPv6 without a port of it", resolve(abi.Addr{}, six), syscall.ENETUNREACH},
		{"resolving from IPv6", resolve(six, four), syscall.ENODEV},
		{"an address of no family that there is", resolve(abi.Addr{}, abi.Addr{Family: 77}), syscall.EAFNOSUPPORT},
		{"capturing another family", capture, syscall.EAFNOSUPPORT},
	} {
		if x.want == nil && x.got != nil || !errors.Is(x.got, x.want) {
			t.Errorf("%s: %v, expected %v", x.what, x.got, x.want)
		}
	}
}

// TestTransportAskedFor: a device is described as the caller shows it.
func last[T any](of []T) T { return of[len(of)-1] }

func TestTransportAskedFor(t *testing.T) {
	_, c := startEquipped(t)
	for asked, want := range map[uint32]string{abi.TransportDefault: personality.IWARP,
		abi.TransportIWARP: personality.IWARP,
		abi.TransportIB:    personality.IB, abi.TransportRoCE: personality.RoCE} {
		d, err := call[abi.QueryDeviceRequest, abi.Device](c, abi.QueryDevice, abi.QueryDeviceRequest{Shown: abi.Shown{Transport: asked}})
		p := personality.Named(want)
		port := personality.Port{MAC: d.MAC, Addr: d.Addr.AddrPort().Addr()}
		if err != nil || d.Transport != p.Transport || d.NodeType != p.NodeType || d.LinkLayer != p.LinkLayer ||
			d.GID != last(p.GIDs(&port)).Value {
			t.Errorf("%#x: %+v, %v", asked, d, err)
		}
	}
}

// TestProfileAskedFor: a device is described as the profile that the caller names, or else as the configured one; a
// transport that the caller names has none.
func TestProfileAskedFor(t *testing.T) {
	asked := func(name string) (s abi.Shown) {
		s.Transport = abi.TransportDefault
		copy(s.Profile[:], name)
		return s
	}
	for _, x := range []struct {
		configured string
		asked      abi.Shown
		name       string
		transport  uint32
	}{
		{"", asked(""), "urdma0", abi.TransportIWARP},
		{"", asked("cx6"), "mlx5_0", abi.TransportRoCE},
		{"", asked("cx6-ib"), "mlx5_0", abi.TransportIB},
		{"cx6", asked(""), "mlx5_0", abi.TransportRoCE},
		{"cx6", asked("t6"), "cxgb4_0", abi.TransportIWARP},
		{"cx6", abi.Shown{Transport: abi.TransportIB}, "urdma0", abi.TransportIB},
	} {
		_, c := startEquipped(t, func(s *control.Server) { s.Profile = x.configured })
		d, err := call[abi.QueryDeviceRequest, abi.Device](c, abi.QueryDevice, abi.QueryDeviceRequest{Shown: x.asked})
		if name, _, _ := strings.Cut(string(d.Name[:]), "\x00"); err != nil || name != x.name || d.Transport != x.transport {
			t.Errorf("%+v: %q, %d, %v", x, name, d.Transport, err)
		}
	}
	_, c := startEquipped(t)
	_, err := call[abi.QueryDeviceRequest, abi.Device](c, abi.QueryDevice, abi.QueryDeviceRequest{Shown: asked("cx")})
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a profile that is none: %v", err)
	}
}

// TestQueuesAskedFor: a queue pair has the queues that it was asked to have.
func TestQueuesAskedFor(t *testing.T) {
	r, c := startEquipped(t)
	for _, cap := range []abi.QPCap{{}, {MaxSendWR: 3}, {MaxRecvWR: 5}, {MaxSendWR: 3, MaxRecvWR: 5}} {
		q, err := call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP,
			abi.CreateQPRequest{PD: 2, QPType: abi.QPTypeRC, SendCQ: 4, RecvCQ: 4, Cap: cap})
		if err != nil || (q.SQ.Entries > 0) != (cap.MaxSendWR > 0) || (q.RQ.Entries > 0) != (cap.MaxRecvWR > 0) {
			t.Errorf("%+v: %+v, %v", cap, q, err)
		}
		for _, state := range []uint32{abi.QPSInit, abi.QPSErr, abi.QPSReset} {
			m := abi.ModifyQPRequest{Handle: q.Handle, Mask: abi.QPMaskState, Attr: abi.QPAttr{QPState: state, PortNum: 1}}
			if state == abi.QPSInit {
				m.Mask |= abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskAccessFlags
			}
			if _, err := call[abi.ModifyQPRequest, abi.QueryQPResponse](c, abi.ModifyQP, m); err != nil {
				t.Errorf("%+v to state %d: %v", cap, state, err)
			}
		}
	}
	if _, err := fetch(r.socket); err != nil {
		t.Error(err)
	}
}

// TestRefusalsAreLogged: of a request that makes no sense the log says what was found and
// what is allowed, by names; of an object that is in use it does where it says everything.
func TestRefusalsAreLogged(t *testing.T) {
	var log logged
	_, c := startEquipped(t, log.take)
	const ctx, pd, cq, qp, channel, id = 1, 2, 4, 5, 6, 7
	handle := func(kind abi.Type, handle uint32) func() error {
		return func() error {
			return refusal(call[abi.HandleMessage, abi.Header](c, kind, abi.HandleMessage{Handle: handle}))
		}
	}
	value := func(kind abi.Type) func() error {
		return func() error {
			return refusal(call[abi.CMValueRequest, abi.Header](c, kind, abi.CMValueRequest{ID: id}))
		}
	}
	connection := func(kind abi.Type) func() error {
		return func() error {
			return refusal(call[abi.CMConnRequest, abi.Header](c, kind, abi.CMConnRequest{ID: id, Param: abi.CMParam{QP: qp}}))
		}
	}
	for _, x := range []struct {
		want syscall.Errno
		says string
		ask  func() error
	}{
		{syscall.EINVAL, "request=CREATE_CQ error=\"control: a completion queue of 0 entries (1 to ", func() error {
			return refusal(call[abi.CreateCQRequest, abi.Header](c, abi.CreateCQ, abi.CreateCQRequest{Context: ctx}))
		}},
		{syscall.EINVAL, "a completion queue of 0 entries", func() error {
			return refusal(call[abi.ResizeCQRequest, abi.Header](c, abi.ResizeCQ, abi.ResizeCQRequest{Handle: cq}))
		}},
		{syscall.EINVAL, "max_send_sge is 4096, allowed: 0 to ", func() error {
			return refusal(call[abi.CreateQPRequest, abi.Header](c, abi.CreateQP, abi.CreateQPRequest{PD: pd, SendCQ: cq,
				RecvCQ: cq, QPType: abi.QPTypeRC, Cap: abi.QPCap{MaxSendSGE: 4096}}))
		}},
		{syscall.EINVAL, "from RESET to INIT the mask lacks IBV_QP_ACCESS_FLAGS|IBV_QP_PKEY_INDEX|IBV_QP_PORT", func() error {
			return refusal(call[abi.ModifyQPRequest, abi.Header](c, abi.ModifyQP,
				abi.ModifyQPRequest{Handle: qp, Mask: abi.QPMaskState, Attr: abi.QPAttr{QPState: abi.QPSInit}}))
		}},
		{syscall.EINVAL, "a memory window of type 7, there are 1 and 2", func() error {
			return refusal(call[abi.AllocMWRequest, abi.Header](c, abi.AllocMW, abi.AllocMWRequest{PD: pd, Type: 7}))
		}},
		{syscall.EINVAL, "a queue pair of type RC, and groups are for UD", func() error {
			return refusal(call[abi.McastRequest, abi.Header](c, abi.AttachMcast, abi.McastRequest{QP: qp}))
		}},
		{syscall.EBUSY, "queue pairs use the completion queue", handle(abi.DestroyCQ, cq)},
		{syscall.EBUSY, "the protection domain still has 2 objects", handle(abi.DeallocPD, pd)},
		{syscall.EBUSY, "the event channel still has 2 ids", handle(abi.CMDestroyChannel, channel)},
		{syscall.EINVAL, "the id is idle, expected resolved", value(abi.CMResolveRoute)},
		{syscall.EINVAL, "the id is idle, expected routed", connection(abi.CMConnect)},
		{syscall.EINVAL, "the id is idle, expected requested", connection(abi.CMAccept)},
		{syscall.EINVAL, "the id is idle, expected requested", connection(abi.CMReject)},
		{syscall.EINVAL, "the id is idle, expected connected", value(abi.CMDisconnect)},
	} {
		before := len(log.String())
		err := x.ask()
		if said := log.String()[before:]; !errors.Is(err, x.want) || !strings.Contains(said, `msg="request refused"`) ||
			!strings.Contains(said, x.says) ||
			strings.Contains(said, "level=DEBUG") != (x.want == syscall.EBUSY) {
			t.Errorf("%v, expected %v and %q in the log:\n%s", err, x.want, x.says, said)
		}
	}
}

// refusal is the errno that a header carries.
func refusal(h abi.Header, err error) error {
	if err == nil && h.Status != 0 {
		return syscall.Errno(h.Status)
	}
	return err
}
