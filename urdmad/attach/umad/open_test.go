package umad

import (
	"testing"

	"urdma/urdmad/control"
	"urdma/urdmad/control/controltest"
	"urdma/verbs/abi"
)

// TestAnswerLost: the resources of an open umad are freed, also if its client has ended before the answer.
func TestAnswerLost(t *testing.T) {
	ended := make(chan struct{}, 2)
	hooks := control.Hooks{Ended: func(*control.Session) { ended <- struct{}{} }}
	r := controltest.Start(t, func(r *controltest.Running) {
		subnet(t).Attach(r.Server)
		r.Server.Attach(&hooks, nil)
	})
	for _, lost := range []bool{false, true} {
		c, err := controltest.Dial(r.Socket)
		if err != nil {
			t.Fatal(err)
		}
		if lost {
			m := abi.OpenUmadRequest{}
			b := abi.Bytes(&m)
			copy(b, abi.Bytes(&abi.Header{Type: abi.OpenUmad, Length: uint32(len(b))}))
			_, err = c.Write(b)
		} else if h, bad := controltest.Call[abi.OpenUmadRequest, abi.Header](c, abi.OpenUmad, abi.OpenUmadRequest{}); bad != nil || h.Status != 0 {
			t.Fatal(h.Status, bad)
		}
		c.Close()
		if <-ended; err != nil {
			t.Fatal(err)
		}
	}
	r.Server.Close()
	if n := r.Server.Accounts.Clients(); n != 0 {
		t.Errorf("%d clients are left", n)
	}
}
