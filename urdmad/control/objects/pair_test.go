package objects

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"urdma/urdmad/control"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// TestControlledQKey: an ordinary program gives its queue pair no Q_Key of management datagrams.
func TestControlledQKey(t *testing.T) {
	for _, mask := range []uint32{abi.QPMaskQKey,
		abi.QPMaskState | abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskQKey} {
		q := &QP{QP: &qp.QP{Config: qp.Config{Type: abi.QPTypeUD}}}
		q.Session = new(control.Session)
		q.Session.UnixConn = new(net.UnixConn)
		q.Session.Owner.UID = os.Getuid() + 1
		err := q.modifyQP(&abi.ModifyQPRequest{Mask: mask,
			Attr: abi.QPAttr{QPState: abi.QPSInit, PortNum: 1, QKey: 0x80010000}}, nil)
		if !errors.Is(err, syscall.EPERM) {
			t.Errorf("mask %#x: %v, expected EPERM", mask, err)
		}
	}
}
