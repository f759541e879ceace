package control_test

import (
	"errors"
	"net/netip"
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
		_, err := call[abi.CMResolveAddrRequest, abi.CMBound](c, abi.CMResolveAddr, abi.CMResolveAddrRequest{ID: id, Src: src, Dst: dst})
		return err
	}
	shown := func(transport uint32) error {
		_, err := call[abi.QueryDeviceRequest, abi.Device](c, abi.QueryDevice, abi.QueryDeviceRequest{Transport: transport})
		return err
	}
	modify := func(mask, state uint32) error {
		_, err := call[abi.ModifyQPRequest, abi.QueryQPResponse](c, abi.ModifyQP, abi.ModifyQPRequest{Handle: 5, Mask: mask, Attr: abi.QPAttr{QPState: state}})
		return err
	}
	four := control.AddrFrom4([4]byte{127, 0, 0, 1}, 1)
	_, bind := call[abi.CMBindRequest, abi.CMBound](c, abi.CMBind, abi.CMBindRequest{ID: id, Addr: six})
	_, capture := call[abi.CaptureRequest, abi.CaptureResponse](c, abi.Capture, abi.CaptureRequest{Device: abi.NoDevice, Host: abi.Addr{Family: 77}})
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
func TestTransportAskedFor(t *testing.T) {
	_, c := startEquipped(t)
	for asked, want := range map[uint32]string{abi.TransportDefault: personality.IWARP, abi.TransportIWARP: personality.IWARP,
		abi.TransportIB: personality.IB, abi.TransportRoCE: personality.RoCE} {
		d, err := call[abi.QueryDeviceRequest, abi.Device](c, abi.QueryDevice, abi.QueryDeviceRequest{Transport: asked})
		p := personality.Named(want)
		port := personality.Port{MAC: d.MAC, Addr: d.Addr.AddrPort().Addr()}
		if err != nil || d.Transport != p.Transport || d.NodeType != p.NodeType || d.LinkLayer != p.LinkLayer || d.GID != p.GID(&port) {
			t.Errorf("%#x: %+v, %v", asked, d, err)
		}
	}
}

// TestQueuesAskedFor: a queue pair has the queues that it was asked to have.
func TestQueuesAskedFor(t *testing.T) {
	r, c := startEquipped(t)
	for _, cap := range []abi.QPCap{{}, {MaxSendWR: 3}, {MaxRecvWR: 5}, {MaxSendWR: 3, MaxRecvWR: 5}} {
		q, err := call[abi.CreateQPRequest, abi.QPResponse](c, abi.CreateQP, abi.CreateQPRequest{PD: 2, QPType: abi.QPTypeRC, SendCQ: 4, RecvCQ: 4, Cap: cap})
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
