package cmid

import (
	"net"
	"path/filepath"
	"testing"

	"urdma/verbs/session"
)

// TestOfferAfterClose: a request that comes while its listener is closed is either refused or destroyed.
func TestOfferAfterClose(t *testing.T) {
	at := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unixpacket", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ended, err := session.Dial(t.Context(), []string{at}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	ended.Close()
	ch := &Channel{session: ended, ids: map[uint32]*ID{}}
	for range 20000 {
		id, child := newID(ch, 1), newID(ch, 2)
		id.requests = make(chan *Request, 4)
		offered := make(chan bool, 1)
		go func() { offered <- id.offer(&Request{ID: child}) }()
		id.CloseListener()
		if !<-offered {
			continue
		}
		select {
		case <-child.done:
		default:
			t.Fatal("taken by a listener that was closed, and kept")
		}
	}
}
