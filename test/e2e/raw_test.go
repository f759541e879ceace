package e2e

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urdma/inspect"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// asRoCE are the settings of ports with an Ethernet link layer, which raw packets need.
var asRoCE = lab.Config{"transport": "roce"}

// raw returns a wire whose ports have a value of raw_packets.
func raw(w lab.Wire, packets string) lab.Wire {
	w.Name, w.RawPackets = w.Name+"/"+packets, packets
	return w
}

// macOf returns the Ethernet address of a node's port.
func macOf(t *testing.T, n *lab.Node, l *lab.Lab) string {
	t.Helper()
	var ports []inspect.Port
	if err := json.Unmarshal([]byte(urdma(t, n, l, "show", "port", "--json")), &ports); err != nil || len(ports) == 0 {
		t.Fatalf("%v, ports %v", err, ports)
	}
	return ports[0].MAC
}

// TestRawEthernet runs perftest's programs for raw packets between two urdmads.
func TestRawEthernet(t *testing.T) {
	whole(t)
	ip := []string{"-j", "198.18.0.1", "-J", "198.18.0.2", "-k", "8000", "-K", "7000"}
	for _, w := range []lab.Wire{raw(lab.Memif, "non-ip"), raw(lab.Memif, "all").WithWorkers(2), raw(lab.AFPacket, "all"), raw(lab.AFXDP, "non-ip")} {
		t.Run(w.Name, func(t *testing.T) {
			l := labtest.New(t)
			if err := l.Can(w); err != nil {
				t.Skip(err)
			}
			a, b := labtest.JoinIn(t, l, w, asRoCE)
			// no more frames than the server has receives, and than wait for a worker that does not run
			// (core/rawpacket, 256), because nobody repeats a lost one
			runs := [][]string{{"raw_ethernet_bw", "-n", "200", "-s", "1400"}, {"raw_ethernet_lat", "-n", "1000"},
				{"raw_ethernet_fs_rate", "-n", "50"}}
			if w.RawPackets == "all" {
				runs = append(runs, slices.Concat(runs[0], ip), slices.Concat(runs[1], ip))
			}
			for _, run := range runs {
				t.Run(strings.Join(run, " "), func(t *testing.T) {
					need(t, run[0])
					rawEthernet(t, l, a, b, run)
				})
			}
		})
	}
}

// rawEthernet runs one of the programs. It exchanges nothing with its peer before the frames: the client starts once
// the server has its flow and its receives.
func rawEthernet(t *testing.T, l *lab.Lab, a, b *lab.Node, run []string) {
	t.Helper()
	ends := [2]string{macOf(t, a, l), macOf(t, b, l)}
	server, err := a.Exec(slices.Concat(run, []string{"-F", "--server", "-B", ends[0], "-E", ends[1]})...)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	if run[0] != "raw_ethernet_fs_rate" {
		awaitFlow(t, a, l, server)
	}
	client, err := b.Exec(slices.Concat(run, []string{"-F", "--client", "-B", ends[1], "-E", ends[0]})...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*lab.Process{client, server} {
		if err := p.Wait(lab.Patience); err != nil || !strings.Contains(p.Output(), "#") {
			t.Errorf("%v:\n%s\n%s", err, lab.Tail(client.Output(), 20), lab.Tail(server.Output(), 20))
			client.Kill()
			break
		}
	}
}

// awaitFlow waits until a program has a flow and receives.
func awaitFlow(t *testing.T, n *lab.Node, l *lab.Lab, p *lab.Process) {
	t.Helper()
	await(t, "a flow with receives", func() (bool, string) {
		var limits []inspect.Limit
		var pairs []inspect.QP
		if json.Unmarshal([]byte(urdma(t, n, l, "show", "limit", "--json")), &limits) != nil ||
			json.Unmarshal([]byte(urdma(t, n, l, "show", "qp", "--json")), &pairs) != nil {
			return false, p.Output()
		}
		flow := slices.ContainsFunc(limits, func(v inspect.Limit) bool { return v.Name == "flows" && v.Used > 0 })
		return flow && len(pairs) > 0 && pairs[0].RecvFill > 0, p.Output()
	})
}

// TestRawFrames: what a program sends is on the wire as it is, and what comes from the wire arrives as it is.
func TestRawFrames(t *testing.T) {
	whole(t)
	need(t, "tcpdump")
	l := labtest.New(t)
	w := raw(lab.AFPacket, "non-ip")
	if err := l.Can(w); err != nil {
		t.Skip(err)
	}
	a, b := labtest.JoinIn(t, l, w, asRoCE)
	program := programtest.Compile(t, filepath.Join(a.Directory(), "rawpacket"), "testdata/rawpacket.c", "-libverbs")
	macs := [2]string{strings.ReplaceAll(macOf(t, a, l), ":", ""), strings.ReplaceAll(macOf(t, b, l), ":", "")}
	frames := []string{macs[1] + macs[0] + "88b5" + strings.Repeat("00ff55aa", 12),
		"ffffffffffff" + macs[0] + "88b6" + hex.EncodeToString([]byte(strings.Repeat("urdma ", 200))),
		macs[1] + macs[0] + "88b5" + strings.Repeat("5a", 1500)}

	dump, err := b.Start("tcpdump", "-i", "veth0", "-n", "-l", "-xx", "ether proto 0x88b5 or ether proto 0x88b6")
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Kill()
	await(t, "tcpdump", func() (bool, string) { return strings.Contains(dump.Output(), "listening on"), dump.Output() })
	receiver, err := b.Exec(program, "receive", "0", macs[1], "2")
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Kill()
	await(t, "the receiver", func() (bool, string) {
		return strings.HasPrefix(receiver.Output(), "ready"), receiver.Output()
	})
	forged := []string{macs[1] + macs[1] + "88b5" + "00", macs[1] + macs[0] + "0800" + "45", macs[1] + macs[0] + "0806"}
	out, err := a.Run(lab.Patience, append([]string{program, "send"}, append(forged, frames...)...)...)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("local QP operation error 0x41a\n", 3) + strings.Repeat("success 0x0\n", 3); out != want {
		t.Errorf("sent: %q, want %q", out, want)
	}
	if err := receiver.Wait(lab.Patience); err != nil {
		t.Fatalf("%v: %s", err, receiver.Output())
	}
	if want := "ready\n" + frames[0] + "\n" + frames[2] + "\n"; receiver.Output() != want {
		t.Errorf("received:\n%s\nwant\n%s", receiver.Output(), want)
	}
	await(t, "the frames in tcpdump", func() (bool, string) {
		return slices.Equal(dumped(dump.Stdout()), frames), dump.Output()
	})
}

// dumped returns the frames that tcpdump -xx has shown, in hexadecimal.
func dumped(out string) (frames []string) {
	for line := range strings.Lines(out) {
		_, bytes, found := strings.Cut(line, ":  ")
		switch {
		case !strings.HasPrefix(line, "\t0x"):
			frames = append(frames, "")
		case found && len(frames) > 0:
			frames[len(frames)-1] += strings.ReplaceAll(strings.TrimSpace(bytes), " ", "")
		}
	}
	return frames
}

// TestRawRefused: EPERM where the configuration does not allow raw packets, where it does not allow sniffers, and for
// a program without CAP_NET_RAW; EOPNOTSUPP on a port without frames.
func TestRawRefused(t *testing.T) {
	for _, c := range []struct {
		wire lab.Wire
		want string
	}{{lab.Loopback, "EOPNOTSUPP does not steer\n"}, {lab.UDP, "EOPNOTSUPP does not steer\n"},
		{lab.Memif, "EPERM does not steer\n"}, {raw(lab.AFPacket, "non-ip"), "0 steers\n"}} {
		t.Run(c.wire.Name, func(t *testing.T) {
			l := labtest.New(t)
			if err := l.Can(c.wire); err != nil {
				t.Skip(err)
			}
			a, _ := labtest.JoinIn(t, l, c.wire, asRoCE)
			program := programtest.Compile(t, filepath.Join(a.Directory(), "rawpacket"), "testdata/rawpacket.c", "-libverbs")
			out, err := a.Run(lab.Patience, program, "create")
			if err != nil || out != c.want {
				t.Errorf("%v, %q, want %q", err, out, c.want)
			}
			if c.wire.RawPackets == "" {
				return
			}
			if out, err := a.Run(lab.Patience, program, "receive", "3", "0", "0"); err != nil || out != "EPERM\n" {
				t.Errorf("a sniffer: %v, %q", err, out)
			}
			withoutCapability(t, a, program)
		})
	}
}

// withoutCapability runs the program as another user than urdmad's, who is no administrator.
func withoutCapability(t *testing.T, n *lab.Node, program string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	need(t, "setpriv")
	for path := range strings.SplitSeq("urdma/urdmad.sock urdma .", " ") {
		mode := os.FileMode(0o755)
		if path == "urdma/urdmad.sock" {
			mode = 0o666
		}
		if err := os.Chmod(filepath.Join(n.Directory(), path), mode); err != nil {
			t.Fatal(err)
		}
	}
	const other = "65533"
	for _, c := range []struct{ capabilities, want string }{{"-all", "EPERM steers\n"}, {"-all,+net_raw", "0 steers\n"}} {
		out, err := n.Run(lab.Patience, "setpriv", "--reuid", other, "--regid", other, "--clear-groups", "--inh-caps",
			c.capabilities, "--ambient-caps", c.capabilities, "--bounding-set", c.capabilities, "--", program, "create")
		if err != nil || out != c.want {
			t.Errorf("with the capabilities %s: %v, %q, want %q", c.capabilities, err, out, c.want)
		}
	}
}
