package vm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/inspect"
	"urdma/test/lab"
)

// card is a network card of QEMU.
type card struct {
	name, device string
	queues       int               // the number of urdmad's workers
	except       map[string]string // steps that can't be done with it, and the reason
}

const virtio = "virtio-net-pci,iommu_platform=on,disable-legacy=on,host_mtu=9000"

// rss: the card chooses queues by a hash; urdmad writes the key and the table.
const rss = ",rss=on"

// models are the cards for which DPDK has drivers.
var models = []card{
	{"virtio-net", virtio, 1, nil},
	{"virtio-net, two queue pairs and workers", virtio + ",mq=on,vectors=6", 2, nil},
	{"virtio-net, two, RSS", virtio + ",mq=on,vectors=6" + rss, 2, nil},
	{"virtio-net, packed rings", virtio + ",packed=on", 1, nil},
	{"e1000", "e1000", 1, nil},
	{"e1000e", "e1000e", 1, nil},
	{"igb", "igb", 1, nil},
	// QEMU fails an assertion at the card's reset
	{"vmxnet3", "vmxnet3", 1, map[string]string{"kill -9, start again": "QEMU 7.2 aborts"}},
}

const (
	hostAddress = "198.18.2.1" // address of urdmad on the host; a bridge joins it to all cards
	cardAddress = "198.18.2.2" // address of urdmad in the machine
	vlan        = 100
	hostTagged  = "198.18.4.1" // the same in the VLAN
	cardTagged  = "198.18.4.2"
)

// cardMachine is a machine with network cards behind an IOMMU.
type cardMachine struct {
	machine
	monitor net.Conn
	cards   []card
}

// newCardMachine makes a machine with a card of each model that this QEMU has.
func newCardMachine(t *testing.T) (m *cardMachine) {
	t.Helper()
	m = &cardMachine{machine: *newHost(t, lab.TCP)}
	if _, err := exec.LookPath("iperf3"); err != nil {
		t.Skip(err)
	}
	known, err := exec.Command(emulator, "-device", "help").CombinedOutput()
	if err != nil {
		t.Skip(err)
	}
	run := func(argv ...string) {
		t.Helper()
		if err := m.host.Net.Run(argv...); err != nil {
			t.Fatal(err)
		}
	}
	run("ip", "link", "add", "cards", "type", "bridge")
	run("ip", "link", "set", "cards", "mtu", "9000") // with all members, otherwise the bridge uses their smallest MTU
	run("ip", "address", "add", hostAddress+"/24", "dev", "cards")
	run("ip", "link", "set", "cards", "up")
	socket := filepath.Join(m.host.Directory(), "monitor")
	args := []string{"-machine", "q35,vmport=off,kernel-irqchip=off", "-device",
		"intel-iommu,intremap=off,caching-mode=on,aw-bits=48",
		"-monitor", "unix:" + socket + ",server=on,wait=off"}
	for _, c := range models {
		name, _, _ := strings.Cut(c.device, ",")
		if !strings.Contains(string(known), `"`+name+`"`) {
			t.Logf("%s: this QEMU has none", c.name)
			continue
		}
		i := len(m.cards)
		tap := fmt.Sprintf("card%d", i)
		netdev, kind := fmt.Sprintf("tap,id=%s,ifname=%s,script=no,downscript=no", tap, tap), []string{}
		if c.queues > 1 {
			netdev, kind = netdev+fmt.Sprintf(",queues=%d", c.queues), []string{"multi_queue"}
		}
		run(append([]string{"ip", "tuntap", "add", tap, "mode", "tap"}, kind...)...)
		run("ip", "link", "set", tap, "mtu", "9000", "master", "cards", "up")
		args = append(args, "-netdev", netdev, "-device",
			fmt.Sprintf("%s,netdev=%s,id=nic%d,mac=02:00:00:00:00:%02x,romfile=,addr=%#x", c.device, tap, i, 0x10+i, 0x10+i))
		m.cards = append(m.cards, c)
	}
	m.boot(m.initrd(), "", args...)
	if m.monitor, err = net.Dial("unix", socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.monitor.Close() })
	// The emulated IOMMU remaps no interrupts.
	m.run(10, "echo 1 >/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts")
	m.host.Address = hostAddress
	if err := m.serve("trp"); err != nil {
		t.Fatal(err)
	}
	m.serveDHCP(t)
	return m
}

// serve starts urdmad on the host, with a protocol.
func (m *cardMachine) serve(protocol string) error {
	if err := m.host.Change("ports", []any{lab.Config{"vdev": "net_af_packet0,iface=cards", "ipv4_address": hostAddress +
		"/24", "protocol": protocol},
		lab.Config{"vdev": "net_tap0,iface=tagged", "ipv4_address": hostTagged + "/24", "vlan": vlan,
			"kernel_interface": "vlan"}}); err != nil {
		return err
	}
	if err := m.host.StartDaemon(); err != nil {
		return err
	}
	// If the bridge had urdmad's own address, it would keep frames to it.
	if err := m.host.Net.Run("ip", "link", "set", "tagged", "address", "02:00:00:00:64:01"); err != nil {
		return err
	}
	return m.host.Net.Run("ip", "link", "set", "tagged", "master", "cards")
}

// roce: both ends speak RoCEv2.
func (m *cardMachine) roce(i int) error {
	err := errors.Join(m.stop("TERM"), m.host.StopDaemon())
	if err == nil {
		err = m.serve("rocev2")
	}
	if err == nil {
		err = m.daemon(i, lab.Config{"protocol": "rocev2"}, "")
	}
	if err == nil {
		err = m.rping(i)
	}
	if err == nil {
		err = m.bandwidth(i)
	}
	return errors.Join(err, m.stop("TERM"), m.host.StopDaemon(), m.serve("trp"), m.daemon(i, nil, ""))
}

// initrd is the machine's root with urdma in it.
func (m *cardMachine) initrd() string {
	ours, whole := filepath.Join(m.host.Directory(), "urdma.cpio"), filepath.Join(m.host.Directory(), "initrd")
	if out, err := exec.Command("./urdma.sh", os.Getenv("URDMA_BUILD"), ours).CombinedOutput(); err != nil {
		m.t.Fatalf("%v\n%s", err, out)
	}
	var text []byte
	for _, part := range []string{filepath.Join(m.dir, "initrd"), ours} {
		b, err := os.ReadFile(part)
		if err != nil {
			m.t.Fatal(err)
		}
		text = append(text, b...)
	}
	if err := os.WriteFile(whole, text, 0o600); err != nil {
		m.t.Fatal(err)
	}
	return whole
}

// link disconnects a card's cable, or connects it.
func (m *cardMachine) link(i int, state string) {
	m.t.Helper()
	if _, err := fmt.Fprintf(m.monitor, "set_link nic%d %s\n", i, state); err != nil {
		m.t.Fatal(err)
	}
}

// pci returns the address of card i.
func pci(i int) string { return fmt.Sprintf("0000:00:%02x.0", 0x10+i) }

// command returns the command that urdma doctor prints for a card.
func (m *cardMachine) command(i int, after string) string {
	m.t.Helper()
	out, err := m.try(20, "urdma doctor --cards")
	_, line, found := strings.Cut(out, "card "+pci(i)+": ")
	line, _, _ = strings.Cut(line, "\n")
	_, command, found2 := strings.Cut(line, after)
	if !found || !found2 {
		m.t.Fatalf("urdma doctor has no command for %s: %v\n%s", pci(i), err, out)
	}
	return command
}

// daemon starts urdmad in the machine on a card, as a user if one is given, and waits for the link.
func (m *cardMachine) daemon(i int, settings lab.Config, user string) error {
	if err := m.launch(i, settings, user); err != nil {
		return err
	}
	return m.until("the link is up", `"link_up": true`)
}

// launch is daemon without waiting for the link.
func (m *cardMachine) launch(i int, settings lab.Config, user string) error {
	port := lab.Config{"pci_address": pci(i), "ipv4_address": cardAddress + "/24"}
	for name, value := range settings {
		port[name] = value
	}
	queues := m.cards[i].queues
	text, err := json.Marshal(lab.Config{"ports": []any{port}, "workers": make([]struct{}, queues)})
	if err != nil {
		return err
	}
	out, err := m.try(60, fmt.Sprintf("rm -rf /tmp/u; mkdir -p /tmp/u; chmod 777 /tmp/u; echo '%s' >/tmp/urdma.json; rm -f /tmp/log; export XDG_RUNTIME_DIR=/tmp/u; "+
		"%s setsid urdmad --config /tmp/urdma.json >/tmp/log 2>&1 & until grep -q 'urdmad is ready' /tmp/log; do kill -0 $! || { cat /tmp/log; exit 1; }; sleep 0.1; done", text, user))
	if err != nil {
		return fmt.Errorf("urdmad does not start: %w\n%s", err, out)
	}
	if out, err := m.try(10, fmt.Sprintf("grep 'port open' /tmp/log; grep -q queues=%d /tmp/log", queues)); err != nil {
		return fmt.Errorf("the card has not %d queues: %s", queues, out)
	}
	return nil
}

// stop ends it by a signal.
func (m *cardMachine) stop(signal string) error {
	out, err := m.try(30, "pkill -"+signal+
		" -x urdmad; while pgrep -x urdmad >/dev/null; do sleep 0.1; done; tail -5 /tmp/log")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// until waits for a text in the output of show port.
func (m *cardMachine) until(what, text string) error {
	out, err := m.try(30, "export XDG_RUNTIME_DIR=/tmp/u; until urdma show port --json | grep -qF '"+text+
		"'; do sleep 0.1; done")
	if err != nil {
		log, _ := m.try(10, "urdma show port --json; cat /tmp/log")
		return fmt.Errorf("waiting until %s: %w: %s\n%s", what, err, out, log)
	}
	return nil
}

// client runs a program against a server on the host.
func (m *cardMachine) client(server, client string) error {
	out, err := m.urdmaServes(60, &program{server: server, client: "XDG_RUNTIME_DIR=/tmp/u urdma exec -- " + client})
	if err != nil {
		log, _ := m.try(10, "tail -5 /tmp/log; export XDG_RUNTIME_DIR=/tmp/u; urdma show port; urdma show worker")
		return fmt.Errorf("%w\n%s\n%s", err, lab.Tail(out, 10), log)
	}
	return nil
}

func (m *cardMachine) rping(int) error {
	return m.client("rping -s -a @ -C 5 -V", "rping -c -a @ -C 5 -V")
}

// bandwidth gives each worker a client once. With RSS a worker's packets arrive in its own queue. Only few packets
// are outstanding, because QEMU 7.2 stops reading a queue of the tap for good if another queue of the card, to which
// RSS directs a packet from it, has no buffers left.
func (m *cardMachine) bandwidth(i int) error {
	lines, hashes := []string{"ib_write_bw -R -F -s 65536 -n 100 -b"}, strings.HasSuffix(m.cards[i].device, rss)
	if hashes {
		lines = []string{"ib_write_bw -R -F -s 65536 -n 100", "ib_send_lat -R -F -n 1000"}
	}
	for _, line := range lines {
		for range m.cards[i].queues {
			if err := m.client(line, line+" @"); err != nil {
				return err
			}
		}
	}
	if !hashes {
		return nil
	}
	out, err := m.try(10, "XDG_RUNTIME_DIR=/tmp/u urdma show worker --json")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	var workers []inspect.Worker
	if err := json.Unmarshal([]byte(out), &workers); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	for n, w := range workers {
		m.t.Logf("worker %d received %d packets and handed %d on", n, w.Received, w.HandedOn)
		if w.Received < 500 || w.HandedOn > w.Received/20 { // only requests and similar packets are handed on
			return fmt.Errorf("of %d packets that came to worker %d, %d were another's", w.Received, n, w.HandedOn)
		}
	}
	return nil
}

// capture checks that rping's packets are in a capture file, with UDP datagrams of both directions.
func (m *cardMachine) capture(int) error {
	p, err := m.start(60, "XDG_RUNTIME_DIR=/tmp/u urdma capture -c 20 -o /tmp/capture.pcapng")
	if err != nil {
		return err
	}
	for p.Running() && !strings.Contains(p.Output(), "captur") {
		time.Sleep(50 * time.Millisecond)
	}
	if err := m.rping(0); err != nil {
		return err
	}
	if out, err := ended(p, 60); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	out, err := m.try(10, "stat -c %s /tmp/capture.pcapng")
	if len(strings.Fields(out)) == 0 || len(strings.Fields(out)[0]) < 4 { // 1,000 bytes
		return fmt.Errorf("a capture of %s bytes: %v", out, err)
	}
	return nil
}

// cable: the link goes down and comes back, and packets pass again.
func (m *cardMachine) cable(i int) error {
	m.link(i, "off")
	if err := m.until("the link is down", `"link_up": false`); err != nil {
		return err
	}
	m.link(i, "on")
	if err := m.until("the link is up", `"link_up": true`); err != nil {
		return err
	}
	return m.rping(i)
}

// killed: after a urdmad was killed, the next one can use the card.
func (m *cardMachine) killed(i int) error {
	if err := m.stop("KILL"); err != nil {
		return err
	}
	if err := m.daemon(i, nil, ""); err != nil {
		return err
	}
	return m.rping(i)
}

var received = regexp.MustCompile(`"rx_packets": (\d+)`)

func (m *cardMachine) received() (n int, err error) {
	out, err := m.try(20, "XDG_RUNTIME_DIR=/tmp/u urdma show port --json")
	if found := received.FindStringSubmatch(out); found != nil {
		_, err = fmt.Sscan(found[1], &n)
	}
	return n, err
}

// filter: frames for another station don't reach urdmad; those for its own address do.
func (m *cardMachine) filter(i int) error {
	const frames = 50
	before, err := m.received()
	if err != nil {
		return err
	}
	flood := func(mac string) error { // sends to a network of the host's kernel from which no answer comes
		for _, argv := range [][]string{{"ip", "address", "replace", "198.18.3.1/24", "dev", "cards"},
			{"ip", "neighbour", "replace", "198.18.3.9", "lladdr", mac, "dev", "cards"}} {
			if err := m.host.Net.Run(argv...); err != nil {
				return err
			}
		}
		_ = m.host.Net.Run("ping", "-q", "-f", "-c", fmt.Sprint(frames), "-W", "1", "198.18.3.9") // unanswered
		return nil
	}
	if err := flood("02:00:00:00:99:99"); err != nil {
		return err
	}
	others, err := m.received()
	if err != nil {
		return err
	}
	if err := flood(fmt.Sprintf("02:00:00:00:00:%02x", 0x10+i)); err != nil {
		return err
	}
	own, err := m.received()
	if err == nil && (others-before >= frames || own-others < frames) {
		err = fmt.Errorf("of %d frames each, %d for another station and %d for its own were received", frames, others-before,
			own-others)
	}
	return err
}

// unbound: the kernel takes the card while a program uses it. The program is notified, urdmad continues, and the
// kernel's driver has the card.
func (m *cardMachine) unbound(i int) error {
	if err := m.stop("TERM"); err != nil {
		return err
	}
	if err := m.daemon(i, nil, ""); err != nil {
		return err
	}
	pair := lab.Pair{ServerNode: m.host, Server: []string{"rping", "-s", "-a", hostAddress}}
	s, err := pair.StartServer()
	if err != nil {
		return err
	}
	defer s.Kill()
	c, err := m.start(60, "XDG_RUNTIME_DIR=/tmp/u urdma exec -- rping -c -a "+hostAddress+" -v")
	if err != nil {
		return err
	}
	for end := time.Now().Add(lab.Patience); !strings.Contains(c.Output(),
		"ping data"); time.Sleep(50 * time.Millisecond) {
		if !c.Running() || time.Now().After(end) {
			return fmt.Errorf("no rping: %s", c.Output())
		}
	}
	if out, err := m.try(50, m.command(i, "back to the kernel, as root: ")); err != nil {
		log, _ := m.try(10, "cat /tmp/log")
		return fmt.Errorf("%w: %s\n%s", err, out, log)
	}
	if err := m.until("the port is without a card", `"link_up": false`); err != nil {
		return err
	}
	m.kill("rping")
	out, err := m.try(20, "pgrep -x urdmad && ls /sys/bus/pci/devices/"+pci(i)+"/driver/module /sys/bus/pci/devices/"+
		pci(i)+"/net /sys/bus/pci/devices/"+pci(i)+"/virtio*/net; "+
		"grep -q takes /tmp/log && [ $(readlink -f /sys/bus/pci/devices/"+pci(i)+
		"/driver) != /sys/bus/pci/drivers/vfio-pci ]")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return m.stop("TERM")
}

// TestCards tests everything that may happen to a card on each model, and compares the results with the table of
// docs/nics.md.
func TestCards(t *testing.T) {
	m := newCardMachine(t)
	steps := []struct {
		name string
		do   func(i int) error
	}{
		{"rping", m.rping}, {"ib_write_bw", m.bandwidth}, {"RoCEv2", m.roce}, {"capture", m.capture},
		{"other stations' frames filtered", m.filter},
		{"link down and up", m.cable}, {"kill -9, start again", m.killed}, {"MTU 9,000, huge pages", m.jumbo},
		{"an ordinary user", m.ordinary},
		{kernelStep, m.shared}, {"VLAN", m.tagged}, {"unbound while in use", m.unbound},
	}
	head := "| |"
	for _, s := range steps {
		head += " " + s.name + " |"
	}
	compareRow(t, head)
	for i, c := range m.cards {
		t.Run(c.name, func(t *testing.T) {
			m.t = t
			_ = m.stop("KILL") // if a failed step left one running
			m.run(30, m.command(i, "for urdmad, as root: "))
			if err := m.daemon(i, nil, ""); err != nil {
				t.Fatal(err)
			}
			row := fmt.Sprintf("| %s |", c.name)
			for _, s := range steps {
				if !strings.Contains(s.name, *only) {
					continue
				}
				if why := c.except[s.name]; why != "" {
					row += " " + why + " |"
					continue
				}
				begun := time.Now()
				err := s.do(i)
				if err != nil {
					t.Errorf("%s: %v", s.name, err)
				}
				t.Logf("%s: %s, %.1f s", s.name, said(err), time.Since(begun).Seconds())
				row += " " + said(err) + " |"
			}
			compareRow(t, row)
		})
	}
}

// compareRow compares a row of the table at the end of docs/nics.md with the results, or writes it.
func compareRow(t *testing.T, row string) {
	t.Helper()
	if *only != "" {
		return
	}
	file := filepath.Join("..", "..", "docs", "nics.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	title := row[:strings.Index(row[1:], "|")+2]
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, title) })
	switch {
	case at >= 0 && lines[at] == row+"\n":
	case !*typed:
		t.Errorf("%s says otherwise (go test ./test/vm -run Cards -type writes it); seen:\n%s", file, row)
	default:
		if at < 0 {
			at, lines = len(lines)-1, append(lines, "")
		}
		lines[at] = row + "\n"
		if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// jumbo runs with huge pages, all other steps without.
func (m *cardMachine) jumbo(i int) error {
	if err := m.stop("TERM"); err != nil {
		return err
	}
	m.run(20, "echo 200 >/proc/sys/vm/nr_hugepages")
	defer m.run(20, "echo 0 >/proc/sys/vm/nr_hugepages")
	if err := m.daemon(i, lab.Config{"mtu": 9000}, ""); err != nil {
		return err
	}
	if out, err := m.try(10, "[ $(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages) -lt 200 ]"); err != nil {
		return fmt.Errorf("no huge page is used: %s", out)
	}
	if err := m.bandwidth(i); err != nil {
		return err
	}
	return m.stop("TERM")
}

// ordinary: a member of the group to which udev's rule gives the card runs urdmad.
func (m *cardMachine) ordinary(i int) error {
	_ = m.stop("TERM") // if one runs
	const user = "setpriv --reuid=1000 --regid=1000 --init-groups --no-new-privs --inh-caps=-all --bounding-set=-all --"
	out, err := m.try(20, "udevadm trigger --subsystem-match=vfio && udevadm settle && ls -l /dev/vfio")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := m.daemon(i, nil, user); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return m.client("rping -s -a @ -C 5 -V", "rping -c -a @ -C 5 -V")
}
