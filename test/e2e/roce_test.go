package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/verbs"
	"urdma/wire"
	"urdma/wire/ibcm"
	"urdma/wire/roce"
)

// TestRoCE runs programs over RoCEv2, unmodified, connected by rdma_cm and by queue pair number: a few over each kind
// of port, with URDMA_LONG all of them.
func TestRoCE(t *testing.T) {
	long := os.Getenv("URDMA_LONG") != ""
	for i, w := range []lab.Wire{lab.RoCE, lab.RoCEFrames, lab.RoCE.WithWorkers(2), lab.RoCE.V6(), lab.RoCE.Jumbo(),
		lab.RoCEFrames.WithWorkers(2)} {
		if i > 2 && !long {
			continue
		}
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			programsOverRoCE(t, a, b, w.IPv6, long)
			if w.Workers > 1 && long { // programs of different workers
				t.Run("of one urdmad", func(t *testing.T) { programsOverRoCE(t, a, a, w.IPv6, long) })
			}
		})
	}
}

func programsOverRoCE(t *testing.T, a, b *lab.Node, ipv6, long bool) {
	n := &byNumber{server: a, client: b, tcp: a.Address}
	if ipv6 {
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
	for _, c := range roceThroughCM(long, ipv6) {
		t.Run(c[0], func(t *testing.T) {
			need(t, strings.Fields(c[0])[0])
			at := strings.NewReplacer("@", a.Address)
			pass(t, lab.Pair{ServerNode: a, ClientNode: b, Server: strings.Fields(at.Replace(c[0])),
				Client: strings.Fields(at.Replace(c[1]))})
		})
	}
}

// roceByNumber are programs that connect by queue pair number.
func roceByNumber(long bool) []string {
	runs := []string{"ibv_rc_pingpong -g 0 -e -c", "ibv_srq_pingpong -g 0 -q 1 -c",
		"ib_write_bw -F -x 0 -s 65536 -n 100 -q 4", "ib_read_bw -F -x 0 -s 65536 -n 100",
		"ib_atomic_bw -F -x 0 -n 100", "ibv_uc_pingpong -g 0 -s 3000", "ibv_ud_pingpong -g 0", "ibv_xsrq_pingpong -g 0",
		"ib_send_bw -F -x 0 -c UD -s 1024 -n 100", "ib_write_bw -F -x 0 -c UC -n 100"}
	if !long {
		return runs
	}
	runs = append(runs, "ibv_rc_pingpong -g 0 -s 1 -m 256", "ibv_rc_pingpong -g 0 -e -c -s 1048576 -n 100",
		"ib_write_bw -F -x 0 -b -q 16 -n 100")
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
	runs := [][2]string{{"rping -s -a @ -C 5 -V -S 3000", "rping -c -a @ -C 5 -V -S 3000"}, {"ucmatose -b @",
		"ucmatose -s @"}, {"udaddy -b @", "udaddy -s @"}, {"rdma_xserver -c x", "rdma_xclient -c x -s @"}}
	if !ipv6 { // perftest -R resolves only IPv4 names
		// its send queue has room for one
		runs = append(runs, [2]string{"ib_send_lat -R -F -e -n 200", "ib_send_lat -R -F -e -n 200 @"})
	}
	if !long {
		return runs
	}
	for _, program := range lab.Perftest {
		if !ipv6 {
			runs = append(runs, [2]string{program + " -R -F -n 200", program + " -R -F -n 200 @"})
		}
	}
	return append(runs, [2]string{"rdma_server -s @ -p 7471", "rdma_client -s @ -p 7471"},
		[2]string{"rdma_xserver -c r", "rdma_xclient -c r -s @"})
}

// TestRoCEGroups: rdma_cm's groups.
func TestRoCEGroups(t *testing.T) {
	for _, w := range []lab.Wire{lab.RoCEFrames, lab.RoCEFrames.V6(), lab.RoCE, lab.RoCE.V6(), lab.RoCE.WithWorkers(2)} {
		group := "239.1.2.3"
		if w.IPv6 {
			group = "ff15::239:1:2:3"
		}
		t.Run(w.Name, func(t *testing.T) {
			a, b := labtest.Join(t, w, nil)
			mckey(t, a, b, "roce", group)
		})
	}
}

// TestRoCECapture: Wireshark's own dissector of InfiniBand reads the output of urdma capture, from the connection
// request to the end, and every packet ends with the right CRC.
func TestRoCECapture(t *testing.T) {
	whole(t)
	need(t, "tshark")
	for _, w := range []lab.Wire{lab.RoCE, lab.RoCEFrames, lab.RoCEFrames.V6()} {
		t.Run(w.Name, func(t *testing.T) {
			l := labtest.New(t)
			if err := l.Can(w); err != nil {
				t.Skip(err)
			}
			a, b, err := l.Join(w, nil)
			if err != nil {
				t.Fatal(err)
			}
			c := capture(t, l, a)
			server := []string{"rping", "-s", "-a", a.Address, "-C", "3", "-S", "3000"}
			pass(t, lab.Pair{ServerNode: a, ClientNode: b, Server: server,
				Client: append([]string{"rping", "-c"}, server[2:]...)})
			checkCRCs(t, c.end())
			out, err := exec.Command("tshark", "-n", "-r", c.file, "-T", "fields", "-E", "separator=,", "-e",
				"infiniband.bth.opcode", "-e", "infiniband.mad.attributeid",
				"-e", "_ws.malformed", "-e", "_ws.expert.message", "udp.port == 4791").Output()
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]int{}
			for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
				f := strings.SplitN(line, ",", 4)
				// An answer was late, so the request was repeated, and answered again.
				again := len(f) == 4 && (f[3] == "urdmad: roce_duplicate_requests" || f[3] == "urdmad: roce_ghost_packets")
				if len(f) != 4 || f[0] == "" || f[2] != "" || f[3] != "" && !again {
					t.Errorf("tshark says %q", line)
					continue
				}
				seen[f[0]+" "+f[1]]++
			}
			// Sends, Reads and their answers, Writes, acknowledgements; REQ, REP, RTU, DREQ and DREP.
			for _, want := range []string{"4 ", "12 ", "13 ", "15 ", "6 ", "8 ", "17 ", "100 0x0010", "100 0x0013", "100 0x0014",
				"100 0x0015", "100 0x0016"} {
				if seen[want] == 0 {
					t.Errorf("no packet of opcode and attribute %q; seen: %v", want, seen)
				}
			}
		})
	}
}

// TestRoCETrafficClass: a program's messages have the traffic class of its address handle or queue pair.
func TestRoCETrafficClass(t *testing.T) {
	whole(t)
	l := labtest.New(t)
	a, b := labtest.JoinIn(t, l, lab.RoCEFrames, nil)
	for _, transport := range []string{"RC", "UC", "UD"} {
		c := capture(t, l, b)
		n := &byNumber{server: a, client: b, tcp: a.Address}
		n.run(t, "roce", "ib_send_bw", "-F", "-x", "0", "-s", "64", "-n", "20", "-c", transport, "--tclass", "104")
		seen := map[byte]int{}
		for _, p := range c.end() {
			if udpAt(p.frame) > 0 {
				seen[p.frame[wire.EthernetLen+1]]++
			}
		}
		if seen[104|2] < 20 || len(seen) != 1 { // with ECT(0)
			t.Errorf("%s: %v packets by traffic class", transport, seen)
		}
	}
}

// TestRoCESegments: every packet that the kernel splits from one send of a UDP socket ends with the right CRC, which
// covers the identification that the kernel gives it.
func TestRoCESegments(t *testing.T) {
	need(t, "tshark")
	for _, w := range []lab.Wire{lab.RoCE, lab.RoCE.V6()} {
		t.Run(w.Name, func(t *testing.T) {
			l := labtest.New(t)
			a, b := labtest.JoinIn(t, l, w, nil)
			// otherwise the other side splits them
			if err := b.Net.Run("ip", "link", "set", "veth0", "gso_max_segs", "1"); err != nil {
				t.Skip(err)
			}
			file := filepath.Join(t.TempDir(), "wire.pcapng")
			sniffer, err := l.Start(lab.Options{},
				b.Net.Command("dumpcap", "-q", "-i", "veth0", "-w", file, "-f", "udp port 4791")...)
			if err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(lab.Patience); !strings.Contains(sniffer.Output(),
				"File:"); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) || !sniffer.Running() {
					t.Fatalf("no capture begins: %s", sniffer.Output())
				}
			}
			n := &byNumber{server: a, client: b, tcp: a.Address}
			if w.IPv6 {
				n.tcp = lab.KernelIPv4(0)
			}
			n.run(t, "roce", "ib_write_bw", "-F", "-x", "0", "-s", "65536", "-n", "50")
			sniffer.Signal(syscall.SIGINT)
			if err := sniffer.Wait(lab.Patience); err != nil {
				t.Fatal(err)
			}
			list := packets(t, file)
			checkCRCs(t, list)
			numbered := 0
			for _, p := range list {
				if len(p.frame) > 1514 {
					t.Fatalf("a packet of %d bytes was not cut", len(p.frame))
				}
				if at := udpAt(p.frame); at > 0 && !w.IPv6 && binary.BigEndian.Uint16(p.frame[wire.EthernetLen+4:]) > 0 {
					numbered++
				}
			}
			if numbered < 1000 && !w.IPv6 {
				t.Errorf("of %d packets %d have a number: they left one by one", len(list), numbered)
			}
		})
	}
}

// checkCRCs computes the invariant CRC of packets as in annex A17.
func checkCRCs(t *testing.T, list []packet) {
	t.Helper()
	checked := 0
	for _, p := range list {
		at := udpAt(p.frame)
		if at == 0 || binary.BigEndian.Uint16(p.frame[at+2:]) != roce.Port {
			continue
		}
		b := append(bytes.Repeat([]byte{255}, 8), p.frame[wire.EthernetLen:]...)
		masked := []int{1, 8, 10, 11} // type of service, time to live, checksum
		if b[8]>>4 == 6 {
			masked = []int{1, 2, 3, 7} // traffic class, flow label, hop limit
			b[8] |= 15
		}
		for _, i := range append(masked, at-wire.EthernetLen+6, at-wire.EthernetLen+7, at-wire.EthernetLen+wire.UDPLen+4) {
			b[8+i] = 255
		}
		end := len(b) - roce.ICRCLen
		if got, want := binary.LittleEndian.Uint32(b[end:]), crc32.ChecksumIEEE(b[:end]); got != want {
			t.Errorf("a packet ends with %08x, its CRC is %08x: % x", got, want, p.frame)
		}
		checked++
	}
	if checked == 0 {
		t.Error("no packets")
	}
}

// TestRoCEPrivateData: a program gets an error at once if a request has no room for its private data, and connects
// with as much as there is room for.
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
	if _, err := client.Dial(ctx, a.Address+":7100", &verbs.ConnOptions{PrivateData: private}); !errors.Is(err,
		syscall.EINVAL) {
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
