package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/verbs"
	"urdma/wire/ibcm"
)

// TestRoCE runs programs over RoCEv2, unmodified, connected by rdma_cm and by queue pair
// number: a few over each kind of port, and all of them over each with URDMA_LONG.
func TestRoCE(t *testing.T) {
	long := os.Getenv("URDMA_LONG") != ""
	for i, w := range []lab.Wire{lab.RoCE, lab.RoCEFrames, lab.RoCE.V6(), lab.RoCE.Jumbo()} {
		if i > 1 && !long {
			continue
		}
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			n := &byNumber{server: a, client: b, tcp: a.Address}
			if w.IPv6 {
				n.tcp = lab.KernelIPv4(0)
			}
			for _, c := range roceByNumber(long) {
				t.Run(c, func(t *testing.T) {
					args := strings.Fields(c)
					if r := n.run(t, "roce", args[0], args[1:]...); strings.Contains(r.Client+r.Server, "invalid data") {
						t.Errorf("server:\n%s\nclient:\n%s", r.Server, r.Client)
					}
				})
			}
			for _, c := range roceThroughCM(long, w.IPv6) {
				t.Run(c[0], func(t *testing.T) {
					need(t, strings.Fields(c[0])[0])
					at := strings.NewReplacer("@", a.Address)
					pass(t, lab.Pair{ServerNode: a, ClientNode: b, Server: strings.Fields(at.Replace(c[0])), Client: strings.Fields(at.Replace(c[1]))})
				})
			}
		})
	}
}

// roceByNumber are programs that connect by queue pair number.
func roceByNumber(long bool) []string {
	runs := []string{"ibv_rc_pingpong -g 0 -e -c", "ibv_srq_pingpong -g 0 -q 1 -c", "ib_write_bw -F -x 0 -s 65536 -n 100 -q 4", "ib_read_bw -F -x 0 -s 65536 -n 100",
		"ib_atomic_bw -F -x 0 -n 100", "ibv_uc_pingpong -g 0 -s 3000", "ibv_ud_pingpong -g 0", "ibv_xsrq_pingpong -g 0", "ib_send_bw -F -x 0 -c UD -s 1024 -n 100", "ib_write_bw -F -x 0 -c UC -n 100"}
	if !long {
		return runs
	}
	runs = append(runs, "ibv_rc_pingpong -g 0 -s 1 -m 256", "ibv_rc_pingpong -g 0 -e -c -s 1048576 -n 100", "ib_write_bw -F -x 0 -b -q 16 -n 100")
	for _, program := range []string{"ib_write_bw", "ib_read_lat", "ib_send_bw", "ib_atomic_bw"} {
		runs = append(runs, program+" -F -x 0 -c XRC -n 200")
	}
	for _, program := range lab.Perftest {
		runs = append(runs, program+" -F -x 0 -n 200", program+" -F -x 0 -a -n 20")
	}
	return runs
}

// roceThroughCM are servers and clients that connect by rdma_cm; @ is the server's address.
func roceThroughCM(long, ipv6 bool) [][2]string {
	runs := [][2]string{{"rping -s -a @ -C 5 -V -S 3000", "rping -c -a @ -C 5 -V -S 3000"}, {"ucmatose -b @", "ucmatose -s @"}, {"udaddy -b @", "udaddy -s @"}, {"rdma_xserver -c x", "rdma_xclient -c x -s @"}}
	if !long {
		return runs
	}
	for _, program := range lab.Perftest {
		if !ipv6 { // perftest -R resolves IPv4 names alone
			runs = append(runs, [2]string{program + " -R -F -n 200", program + " -R -F -n 200 @"})
		}
	}
	return append(runs, [2]string{"rdma_server -s @ -p 7471", "rdma_client -s @ -p 7471"}, [2]string{"rdma_xserver -c r", "rdma_xclient -c r -s @"})
}

// TestRoCEGroups: rdma_cm's groups, on a port that carries frames.
func TestRoCEGroups(t *testing.T) {
	a, b := labtest.Join(t, lab.RoCEFrames, nil)
	mckey(t, a, b, "roce", "239.1.2.3")
}

// TestRoCEPrivateData: a program hears at once that a request has no room for its private
// data, and connects with as much as there is room for.
func TestRoCEPrivateData(t *testing.T) {
	a, b := labtest.Join(t, lab.RoCE, nil)
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	l, err := goClient(t, a).Listen(a.Address + ":7100")
	if err != nil {
		t.Fatal(err)
	}
	client := goClient(t, b)
	private := bytes.Repeat([]byte{7}, ibcm.MaxPrivate+1)
	if _, err := client.Dial(ctx, a.Address+":7100", &verbs.ConnOptions{PrivateData: private}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("%d bytes: %v", len(private), err)
	}
	go func() {
		_, err := client.Dial(ctx, a.Address+":7100", &verbs.ConnOptions{PrivateData: private[:ibcm.MaxPrivate]})
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%d bytes: %v", ibcm.MaxPrivate, err)
		}
		stop()
	}()
	r, err := l.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.PrivateData, private[:ibcm.MaxPrivate]) {
		t.Errorf("came as %x", r.PrivateData)
	}
	if err := r.Reject(nil); err != nil {
		t.Error(err)
	}
	<-ctx.Done()
}
