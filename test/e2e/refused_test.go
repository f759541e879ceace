package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/verbs"
)

// TestRefused: rdma_cm reports the same over UDP and TCP if nobody listens, the host does not exist, a listener
// rejects, or a port number is in use. Private data is the same, too.
func TestRefused(t *testing.T) {
	for _, w := range []lab.Wire{lab.UDP, lab.TCP} {
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, lab.Config{"death_timeout_ms": 2000})
			server, client := goClient(t, a), goClient(t, b)
			ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
			defer stop()
			at := func(host string, port int) string { return fmt.Sprintf("%s:%d", host, port) }

			var rejected *verbs.RejectedError
			if _, err := client.Dial(ctx, at(a.Address, 7100), nil); !errors.As(err, &rejected) ||
				!errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("nobody listens: %v", err)
			}
			// Over TCP the kernel may give up before urdmad does.
			if _, err := client.Dial(ctx, at("198.18.1.77", 7100), nil); !errors.Is(err, verbs.ErrNoWay) &&
				!errors.Is(err, syscall.ETIMEDOUT) && !errors.Is(err, syscall.EHOSTUNREACH) {
				t.Errorf("no such host: %v", err)
			}
			l, err := server.Listen(at(a.Address, 7101))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := server.Listen(at(a.Address, 7101)); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("a second listener: %v", err)
			}
			for _, n := range []int{0, 1, verbs.MaxPrivateData} {
				ours, theirs := bytes.Repeat([]byte{1}, n), bytes.Repeat([]byte{2}, n)
				for _, accept := range []bool{true, false} {
					answered := make(chan error, 1)
					go func() {
						r, err := l.Next(ctx)
						switch {
						case err != nil:
						case !bytes.Equal(r.PrivateData, ours):
							err = errors.Join(fmt.Errorf("private data of %d bytes came as %x", n, r.PrivateData), r.Reject(nil))
						case accept:
							var c *verbs.Conn
							if c, err = r.Accept(ctx, &verbs.ConnOptions{PrivateData: theirs}); err == nil {
								defer c.Close()
								_, err = c.Recv(ctx)
								if errors.Is(err, verbs.ErrDisconnected) {
									err = nil
								}
							}
						default:
							err = r.Reject(theirs)
						}
						answered <- err
					}()
					c, err := client.Dial(ctx, at(a.Address, 7101), &verbs.ConnOptions{PrivateData: ours})
					switch {
					case accept && (err != nil || !bytes.Equal(c.PrivateData(), theirs)):
						t.Errorf("%d bytes, accepted: %v", n, err)
					case !accept && (!errors.As(err, &rejected) || !bytes.Equal(rejected.PrivateData, theirs)):
						t.Errorf("%d bytes, rejected: %v", n, err)
					}
					if c != nil {
						c.Close()
					}
					if err := <-answered; err != nil {
						t.Errorf("%d bytes, the server: %v", n, err)
					}
				}
			}
			if w.Name != lab.TCP.Name {
				return
			}
			need(t, "ib_write_bw")
			p, err := lab.Pair{ServerNode: a, TCPPort: 7102, Server: []string{"ib_write_bw", "-F", "-p", "7102"}}.StartServer()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			if l, err := server.Listen(at(a.Address, 7102)); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("a socket of the kernel's has the port number: %v, %v", l, err)
			}
		})
	}
}
