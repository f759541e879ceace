package verbs

import (
	"testing"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// TestOfferAfterClose: a request that is offered while its listener is closed is
// either refused or given back.
func TestOfferAfterClose(t *testing.T) {
	c := &Client{session: session.Ended()}
	ch := &eventChannel{client: c, ids: map[uint32]*connID{}}
	for range 20000 {
		id, child := newConnID(ch, 1), newConnID(ch, 2)
		id.requests = make(chan *Request, 4)
		offered := make(chan bool, 1)
		go func() { offered <- id.offer(newRequest(child, &abi.CMEvent{})) }()
		if err := (&Listener{id: id}).Close(); err != nil {
			t.Fatal(err)
		}
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
