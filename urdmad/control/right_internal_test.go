package control

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// TestControlledQKey: an ordinary program gives its queue pair no Q_Key of management datagrams.
func TestControlledQKey(t *testing.T) {
	_, ours := pair(t)
	for _, mask := range []uint32{abi.QPMaskQKey,
		abi.QPMaskState | abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskQKey} {
		q := &QP{QP: &qp.QP{Config: qp.Config{Type: abi.QPTypeUD}}}
		q.x = sessionOf(os.Getuid()+1, 0)
		q.x.conn.UnixConn = ours
		err := q.modifyQP(&abi.ModifyQPRequest{Mask: mask,
			Attr: abi.QPAttr{QPState: abi.QPSInit, PortNum: 1, QKey: 0x80010000}}, nil)
		if !errors.Is(err, syscall.EPERM) {
			t.Errorf("mask %#x: %v, expected EPERM", mask, err)
		}
	}
}
