package cmid

import (
	"context"
	"net/netip"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// Request is a connection request that waits for Accept or Reject (RDMA_CM_EVENT_CONNECT_REQUEST of
// rdma_get_cm_event(3)).
type Request struct {
	ID    *ID // id of the new connection
	Event abi.CMEvent
}

// Listen binds the id and starts to listen (rdma_bind_addr(3), rdma_listen(3)). It returns the address with
// the port number chosen.
func (id *ID) Listen(at netip.AddrPort, backlog uint32) (netip.AddrPort, error) {
	addr, err := abi.AddrFrom(at)
	if err != nil {
		return netip.AddrPort{}, err
	}
	var bound abi.CMBound
	ctx, s := context.Background(), id.channel.session
	if _, err = session.Call(ctx, s, abi.CMBind, &abi.CMBindRequest{ID: id.handle, Addr: addr},
		&bound, -1, 0); err == nil {
		_, err = session.Call(ctx, s, abi.CMListen, &abi.CMValueRequest{ID: id.handle, Value: backlog}, &bound, -1, 0)
	}
	return bound.Local.AddrPort(), err
}

func (id *ID) offer(r *Request) bool {
	id.offering.Lock()
	defer id.offering.Unlock()
	select {
	case <-id.done:
		return false
	default:
	}
	select {
	case id.requests <- r:
		return true
	default:
		return false
	}
}

// Next waits for a connection request to a listener.
func (id *ID) Next(ctx context.Context) (*Request, error) {
	select {
	case r := <-id.requests:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-id.done:
		return nil, id.why
	}
}

// CloseListener destroys a listener's id and rejects the queued requests.
func (id *ID) CloseListener() {
	id.Destroy()
	id.offering.Lock() // no request is queued after this
	defer id.offering.Unlock()
	for {
		select {
		case r := <-id.requests:
			r.ID.Destroy()
		default:
			return
		}
	}
}
