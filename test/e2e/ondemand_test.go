package e2e

import (
	"bytes"
	"context"
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/verbs"
)

// odpBytes is the length of a region for on-demand paging: several packets on each wire.
const odpBytes = 16 * 4096

// TestOnDemand: on every wire a peer reaches what is mapped at that moment, and an access to nothing fails with an
// answer of its own.
func TestOnDemand(t *testing.T) {
	for _, w := range []lab.Wire{lab.Loopback, lab.Memif, lab.UDP, lab.TCP, lab.RoCE} {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			s := &sparseHost{t: t, server: goClient(t, a), client: goClient(t, b), at: a.Address + ":7104",
				early: w.Name == lab.TCP.Name}
			var err error
			if s.listener, err = s.server.Listen(s.at); err != nil {
				t.Fatal(err)
			}
			if s.memory, err = unix.Mmap(-1, 0, odpBytes, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Munmap(s.memory) })
			s.run()
		})
	}
}

// sparseHost serves memory, some of which is not there, to one connection after the other.
type sparseHost struct {
	t              *testing.T
	server, client *verbs.Client
	listener       *verbs.Listener
	at             string
	early          bool // a Write or Send completes before the peer has it
	memory         []byte
}

func (s *sparseHost) run() {
	protect := func(from, to, prot int) {
		s.t.Helper()
		if err := unix.Mprotect(s.memory[from:to], prot); err != nil {
			s.t.Fatal(err)
		}
	}
	failed := verbs.StatusRemAccessErr
	s.write("nothing is mapped", 1, odpBytes, failed)
	s.read("nothing is mapped", 1, odpBytes, failed)
	protect(0, odpBytes/2, unix.PROT_READ|unix.PROT_WRITE)
	s.write("mapped since", 2, odpBytes/2, verbs.StatusSuccess)
	s.read("mapped since", 2, odpBytes/2, verbs.StatusSuccess)
	s.write("half is mapped", 3, odpBytes, failed)
	s.read("half is mapped", 3, odpBytes, failed)
	s.send("a receive of which half is mapped, for half of it", 4, odpBytes/2, verbs.StatusSuccess)
	s.send("a receive of which half is mapped", 5, odpBytes, verbs.StatusLocProtErr)
	protect(0, odpBytes, unix.PROT_READ|unix.PROT_WRITE)
	s.write("all is mapped", 6, odpBytes, verbs.StatusSuccess)
	if err := unix.Madvise(s.memory, unix.MADV_DONTNEED); err != nil || s.memory[0] != 0 {
		s.t.Fatalf("not dropped: %v", err)
	}
	s.read("dropped: zeros", 0, odpBytes, verbs.StatusSuccess)
	protect(0, odpBytes, unix.PROT_READ)
	s.read("read only", 0, odpBytes, verbs.StatusSuccess)
	s.write("read only", 7, odpBytes, failed)
	if s.memory[0] != 0 {
		s.t.Error("read-only memory was written")
	}
}

// connect makes a connection, and registers the server's memory in its protection domain.
func (s *sparseHost) connect(prepare func(*verbs.Conn, *verbs.MR) error) (client, server *verbs.Conn, there *verbs.MR,
	end func()) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	done := make(chan error, 1)
	go func() {
		r, err := s.listener.Next(ctx)
		if err == nil {
			server, err = r.Accept(ctx, &verbs.ConnOptions{Prepare: func(c *verbs.Conn) (err error) {
				there, err = c.PD().RegisterMemory(s.memory,
					verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.OnDemand)
				if err == nil && prepare != nil {
					err = prepare(c, there)
				}
				return err
			}})
		}
		done <- err
	}()
	client, err := s.client.Dial(ctx, s.at, nil)
	if err2 := <-done; errors.Is(err2, syscall.EOPNOTSUPP) {
		s.t.Skip(err2)
	} else if err != nil || err2 != nil {
		s.t.Fatal(err, err2)
	}
	return client, server, there, func() { client.Close(); server.Close() }
}

func (s *sparseHost) write(what string, value byte, n int, want verbs.Status) {
	s.t.Helper()
	s.access(what, value, n, want, (*verbs.Conn).Write)
	if want == verbs.StatusSuccess && !bytes.Equal(s.memory[:n], bytes.Repeat([]byte{value}, n)) {
		s.t.Errorf("%s: not written", what)
	}
}

func (s *sparseHost) read(what string, value byte, n int, want verbs.Status) {
	s.t.Helper()
	got := s.access(what, 99, n, want, (*verbs.Conn).Read)
	if want == verbs.StatusSuccess && !bytes.Equal(got, bytes.Repeat([]byte{value}, n)) {
		s.t.Errorf("%s: read something else", what)
	}
}

// access carries out a Write or a Read of n bytes, which are value in the client's memory, and returns what is there
// then.
func (s *sparseHost) access(what string, value byte, n int, want verbs.Status,
	op func(*verbs.Conn, context.Context, verbs.Remote, ...verbs.SGE) error) []byte {
	s.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	client, server, there, end := s.connect(nil)
	defer end()
	here := s.filled(client, value)
	err := op(client, ctx, there.Remote(0), here.SGE(0, n))
	if want != verbs.StatusSuccess && err == nil && s.early {
		if _, ended := server.Recv(ctx); ended == nil || ctx.Err() != nil {
			s.t.Errorf("%s: the connection has not ended: %v", what, ended)
		}
	} else if statusOf(err) != want {
		s.t.Errorf("%s: %v, expected %v", what, err, want)
	}
	return bytes.Clone(here.Bytes()[:n])
}

// send sends n bytes to a receive that has all of the server's memory; want is the receive's status.
func (s *sparseHost) send(what string, value byte, n int, want verbs.Status) {
	s.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	client, server, _, end := s.connect(func(c *verbs.Conn, m *verbs.MR) error {
		return c.PostRecv(&verbs.RecvWR{ID: 1, SGE: []verbs.SGE{m.SGE(0, odpBytes)}})
	})
	defer end()
	sent := client.Send(ctx, s.filled(client, value).SGE(0, n))
	if want != verbs.StatusSuccess && statusOf(sent) != verbs.StatusRemOpErr && !s.early ||
		want == verbs.StatusSuccess && sent != nil {
		s.t.Errorf("%s: the sender: %v", what, sent)
	}
	c, err := server.Recv(ctx)
	if statusOf(err) != want || err == nil && s.memory[n-1] != value {
		s.t.Errorf("%s: %+v, %v, expected %v", what, c, err, want)
	}
}

func (s *sparseHost) filled(c *verbs.Conn, value byte) *verbs.MR {
	m, err := c.PD().AllocMemory(odpBytes, verbs.LocalWrite)
	if err != nil {
		s.t.Fatal(err)
	}
	copy(m.Bytes(), bytes.Repeat([]byte{value}, odpBytes))
	return m
}

// statusOf returns the status of the completion that an error is made from.
func statusOf(err error) verbs.Status {
	var failed *verbs.CompletionError
	if errors.As(err, &failed) {
		return failed.Completion.Status
	}
	if err != nil {
		return ^verbs.StatusSuccess // no status of a completion
	}
	return verbs.StatusSuccess
}
