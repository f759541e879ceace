package verbs

import (
	"context"
	"sync"
	"sync/atomic"

	"urdma/verbs/abi"
	"urdma/verbs/cmid"
	"urdma/verbs/session"
	"urdma/verbs/yield"
)

// Client is a session with urdmad. All objects made through it end with it.
type Client struct {
	session *session.Session

	urdmad  *session.Greeting
	devices []*Device
	memory  arena

	readers sync.WaitGroup
	// read-locked from a request until its object is in the tables, so that Close finds it; never twice by
	// one goroutine
	making sync.RWMutex

	pairs atomic.Uint64 // counts queue pairs, to give them distinct IDs
	round yield.Round   // the round of polls over all completion queues

	contexts session.Objects[*Context]
	channels session.Objects[*CompChannel]
	regions  session.Objects[*MR]
	cqs      session.Objects[*CQ]
	qps      session.Objects[*QP]
	srqs     session.Objects[*SRQ]

	cm      atomic.Pointer[cmid.Channel]
	sharing session.Mutex    // guards the creation of cm and of the contexts in shared
	shared  map[int]*Context // by device, for connections without a protection domain of their own
}

// Open connects to urdmad. An empty socket means the one that urdma exec would find: $URDMA_SOCKET, or
// urdma/urdmad.sock in $XDG_RUNTIME_DIR, or /run/urdma/urdmad.sock, or /tmp/urdma-UID/urdmad.sock. The error
// is ErrNoDaemon if none answers, ErrVersion if urdmad has another protocol version.
func Open(socket string) (*Client, error) { return OpenContext(context.Background(), socket) }

// OpenContext is like Open, but waits for urdmad only until ctx ends.
func OpenContext(ctx context.Context, socket string) (*Client, error) {
	places := []string{socket}
	if socket == "" {
		places = session.Places()
	}
	c := &Client{sharing: session.NewMutex(), shared: map[int]*Context{}}
	var err error
	if c.session, err = session.Dial(ctx, places, c.lost); err != nil {
		return nil, err
	}
	if c.urdmad, err = c.session.Greet(ctx); err == nil {
		err = c.readDevices(ctx, c.urdmad.Devices)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Gone is closed when the session with urdmad has ended.
func (c *Client) Gone() <-chan struct{} { return c.session.Gone() }

func (c *Client) dead() bool { return c.session.Dead() }

// endError returns how the client ended.
func (c *Client) endError() error { return c.session.EndError() }

// orEnd returns err, or how the client ended if that is the cause of err.
func (c *Client) orEnd(err error) error {
	if c.dead() {
		return c.endError()
	}
	return err
}

// lost wakes all goroutines that wait for urdmad.
func (c *Client) lost() {
	for _, q := range c.cqs.All() {
		q.wake()
	}
	if cm := c.cm.Load(); cm != nil {
		cm.End()
	}
	for _, m := range c.regions.All() {
		m.unpin() // a client garbage-collected with pinned memory would cause a panic
	}
}

func (c *Client) callHandle(t abi.Type, handle uint32) error { return c.session.CallHandle(t, handle) }

// destroy asks urdmad to destroy an object; if urdmad has ended, it returns nil, because the object is gone.
func (c *Client) destroy(t abi.Type, handle uint32) error {
	if err := c.callHandle(t, handle); err != nil && !c.dead() {
		return err
	}
	return nil
}

// call is session.Call without a time limit.
func call[Resp, Req any](c *Client, t abi.Type, req *Req, out *Resp, sendFD, wantFDs int) ([]int, error) {
	return callContext(context.Background(), c, t, req, out, sendFD, wantFDs)
}

func callContext[Resp, Req any](ctx context.Context, c *Client, t abi.Type, req *Req, out *Resp,
	sendFD, wantFDs int) ([]int, error) {
	return session.Call(ctx, c.session, t, req, out, sendFD, wantFDs)
}

// Mark puts a mark into traces (urdma trace) and urdmad's flight recorder; 95 bytes of the text are kept. If
// nobody traces, it costs a request to urdmad.
func (c *Client) Mark(text string) error {
	var m abi.MarkRequest
	copy(m.Text[:len(m.Text)-1], text)
	_, err := call[abi.MarkRequest, abi.MarkRequest](c, abi.Mark, &m, nil, -1, 0)
	return err
}

// Inject carries out statements of urdma inject (docs/debugging.md) that concern this client's objects alone, for tests
// of error handling: no other client is affected, whatever urdmad's user may do. It returns the number of the first
// rule that they make, 0 for none; for "hits NUMBER" it returns how many events the rule has hit. Rules end by
// "clear NUMBER" or "clear", and with the client; those for a queue pair (qp=) with the queue pair. Errors: EINVAL, a
// statement is malformed (urdmad's log says how); ENOENT, no such object or rule; EPERM, the statement concerns ports;
// EDQUOT, too many rules; EOPNOTSUPP, the urdmad cannot inject, or a post is to fail, which only C programs have.
func (c *Client) Inject(statements string) (uint64, error) {
	resp, err := c.session.Inject(context.Background(), abi.InjectOwn, statements)
	if resp.Asked != 0 {
		return resp.Hits, err
	}
	return uint64(resp.Number), err
}

// Close ends the session with urdmad and everything made through it: queue pairs, whose peers are told;
// listeners; and memory of AllocMemory, which must not be accessed afterwards. Calls that wait return
// ErrClosed.
func (c *Client) Close() error {
	if err := c.session.Close(); err != nil {
		return err
	}
	c.making.Lock() // waits for requests under way; later ones fail
	defer c.making.Unlock()
	releaseAll(&c.qps)
	releaseAll(&c.srqs)
	releaseAll(&c.cqs)
	c.memory.close() // before regions are freed: urdmad may still send their contents, so nothing may be punched out
	releaseAll(&c.regions)
	releaseAll(&c.channels)
	releaseAll(&c.contexts)
	if cm := c.cm.Load(); cm != nil {
		cm.Close()
	}
	c.session.Wait()
	c.readers.Wait()
	if c.urdmad != nil {
		c.urdmad.Release()
	}
	return nil
}

func releaseAll[V interface{ release() }](o *session.Objects[V]) {
	for _, v := range o.Drain() {
		v.release()
	}
}
