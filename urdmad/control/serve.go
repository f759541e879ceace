package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/account"
	"urdma/verbs/abi"
)

// Serve accepts clients until the listener is closed.
func (s *Server) Serve(l *net.UnixListener) error {
	for {
		c, err := l.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			// Most often descriptors have run out; clients will free some.
			s.Log.Warn("accepting a client", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		s.start(c)
	}
}

func (s *Server) start(c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		s.late.Close(c)
		return
	}
	if s.sessions == nil {
		s.sessions = map[*Session]struct{}{}
	}
	x := newSession(s, c)
	s.wait(x)
	s.sessions[x] = struct{}{}
	s.running.Go(func() {
		x.run()
		s.served(x)
		x.Leave()
		s.mu.Lock()
		delete(s.sessions, x)
		s.mu.Unlock()
	})
}

// Go runs fn concurrently with the sessions, and Close waits for it. It does nothing once Close
// has begun.
func (s *Server) Go(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.running.Go(fn)
	}
}

// Close hangs up on every client and waits until all their objects are removed. The engine must
// still be running.
func (s *Server) Close() {
	for _, w := range s.Workers {
		w.Turn(w.CM.Silence)
	}
	s.mu.Lock()
	s.closing = true
	for x := range s.sessions {
		x.conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

func newSession(s *Server, c *net.UnixConn) *Session {
	x := &Session{s: s, w: s.Workers[0], id: s.nextID.Add(1), name: "new client", objects: map[uint32]Object{}, kick: -1,
		over: make(chan struct{})}
	x.Owner.Learn(c)
	x.Join(&s.Accounts)
	x.conn = newConn(c, x.Closer())
	// fails only for a closed socket, which ends the session anyway
	_ = c.SetReadDeadline(time.Now().Add(firstRequestTime))
	return x
}

// run answers requests until the client hangs up or violates the protocol.
func (x *Session) run() {
	err := x.serve()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("control: no request within %v of connecting", firstRequestTime)
	}
	if err != nil && !errors.Is(err, errHangUp) && !errors.Is(err, net.ErrClosed) {
		x.s.Log.Warn("client closed", "client", x.name, "error", err)
	}
	x.cleanUp()
	close(x.over)
	x.conn.Close()
	x.s.Log.Debug("client gone", "client", x.name)
}

func (x *Session) serve() error {
	buf := make([]byte, abi.MaxMessage)
	for {
		n, err := x.Receive(buf)
		if err == nil {
			if x.asked.CompareAndSwap(false, true) {
				_ = x.conn.SetReadDeadline(time.Time{})
			}
			err = x.request(buf[:n])
		}
		x.DropFiles()
		if x.becomes != nil { // also if the answer is lost: what was taken is given back there
			return errors.Join(err, x.becomes())
		}
		if err != nil {
			return err
		}
	}
}

// request answers one message. An error ends the session; mistakes that a client can make are
// answered with an errno value instead.
func (x *Session) request(b []byte) error {
	if len(b) < abi.Size[abi.Header]() {
		return fmt.Errorf("control: message of %d bytes is shorter than its header", len(b))
	}
	h := headerOf(b)
	if int(h.Length) != len(b) {
		return fmt.Errorf("control: message of %d bytes says it has %d", len(b), h.Length)
	}
	if !x.ready && h.Type != abi.Hello && h.Type.Way() != abi.Looks {
		return fmt.Errorf("control: first message has type %d, expected HELLO (%d)", h.Type, abi.Hello)
	}
	x.reply = Reply{}
	err := x.dispatch(h.Type, b, &x.reply)
	return x.answer(h, &x.reply, err)
}

func (x *Session) answer(h abi.Header, r *Reply, err error) error {
	if r.Done != nil {
		defer r.Done()
	}
	h.Length, h.Status = uint32(abi.Size[abi.Header]()), 0
	out := abi.Bytes(&h)
	if err != nil {
		h.Status = int32(ErrnoOf(err))
		r.FDs = nil
		x.logRefused(h.Type, err)
	}
	if r.Body != nil && (err == nil || errors.Is(err, errVersion)) {
		h.Length = uint32(len(r.Body))
		copy(r.Body, abi.Bytes(&h))
		out = r.Body
	}
	var oob []byte
	if len(r.FDs) > 0 {
		oob = unix.UnixRights(r.FDs...)
	}
	_, _, err = x.conn.WriteMsgUnix(out, oob, nil)
	return err
}

// Become makes serve take over the connection once the current request is answered; the session
// ends with it. The client must not have said HELLO.
func (x *Session) Become(serve func() error) error {
	if x.ready || x.becomes != nil {
		return fmt.Errorf("control: the session is in other use: %w", syscall.EBUSY)
	}
	x.s.served(x)
	x.becomes = serve
	return nil
}

// Listen makes the control socket. Its directory must exist. A stale socket is replaced; a live
// socket or any other file is an error.
func Listen(path string, mode os.FileMode) (*net.UnixListener, error) {
	if c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"}); err == nil {
		defer c.Close()
		var other account.Owner
		other.Learn(c)
		return nil, fmt.Errorf("control: another urdmad, process %d, listens on %s", other.PID, path)
	} else if errors.Is(err, unix.ECONNREFUSED) {
		if err := removeStale(path); err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
	}
	old := unix.Umask(0o177)
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	unix.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("control: listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, fmt.Errorf("control: %w", err)
	}
	return l, nil
}

// removeStale removes a socket on which nobody listens. Other files are an error: connect(2)
// fails with ECONNREFUSED for them too.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is %s, expected a socket or no file; choose another path by --socket, \"socket\" in urdma.json or URDMA_SOCKET", path, kindOf(fi.Mode()))
	}
	return os.Remove(path)
}

func kindOf(m fs.FileMode) string {
	switch m.Type() {
	case 0:
		return "a regular file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	default:
		return "a device"
	}
}
