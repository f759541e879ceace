package vm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

const (
	emulator = "qemu-system-x86_64"
	address  = "198.18.1.2" // of the machine
	guestGID = "1"          // index of the machine's GID, with rxe
	hostGID  = "3"          // index of the host's GID, with RoCEv2

	preloaded      = "PRELOADED " // in front of a program's line: its sockets are rsockets
	preloadLibrary = "/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so"
	busybox        = "BUSYBOX" // in a line: the path of a file that both sides have
)

// machine is the virtual machine and the host with urdmad to which it is connected.
type machine struct {
	t    *testing.T
	host *lab.Node
	dir  string // the files that build.sh made
}

// newMachine starts both, or skips the test. Without offloads no frame exceeds the MTU, and checksums are complete.
func newMachine(t *testing.T, w lab.Wire) *machine {
	t.Helper()
	m := newHost(t, w)
	m.boot(filepath.Join(m.dir, "initrd"), ",csum=off,guest_csum=off,gso=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off")
	if w.MTU > 0 {
		m.run(10, fmt.Sprint("ip link set eth0 mtu ", w.MTU))
	}
	if err := m.host.StartDaemon(); err != nil {
		t.Fatal(err)
	}
	return m
}

// newHost makes the host to which the machine is to be connected, or skips the test.
func newHost(t *testing.T, wire lab.Wire) *machine {
	t.Helper()
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("takes minutes; make test-long")
	}
	for _, program := range []string{emulator, "gcc-12", "cpio", "xz", "apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		t.Skip(err)
	} else {
		tun.Close()
	}
	l := labtest.New(t)
	wire.Capable = true // QEMU opens the tap
	if err := l.Can(wire); err != nil {
		t.Skip(err)
	}
	dir, err := filepath.Abs(filepath.Join(os.Getenv("URDMA_BUILD"), "vm"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("./build.sh", dir).CombinedOutput(); err != nil {
		t.Skipf("Debian's packages for the machine can't be had: %v\n%s", err, lab.Tail(string(out), 30))
	}
	m := &machine{t: t, dir: dir}
	if m.host, err = l.Tap(wire, nil); err != nil {
		t.Fatal(err)
	}
	return m
}

// boot starts the machine. offloads are those of its own card, to which veth0 leads; args are more arguments for
// QEMU.
func (m *machine) boot(initrd, offloads string, args ...string) {
	t := m.t
	t.Helper()
	qemu, err := m.host.Start(append([]string{emulator, "-nodefaults", "-no-user-config", "-display", "none", "-accel",
		"tcg,thread=multi",
		"-cpu", "max,la57=off", "-smp", "2", "-m", "2048", "-no-reboot", "-kernel", filepath.Join(m.dir, "vmlinuz"),
		"-initrd", initrd,
		"-append", "console=ttyS0 quiet nokaslr mitigations=off nowatchdog audit=0 tsc=reliable clocksource=tsc no_timer_check random.trust_cpu=on panic=-1 intel_iommu=on iommu=pt rdinit=/init address=" + address + "/24",
		"-netdev", "tap,id=net0,ifname=veth0,script=no,downscript=no", "-device", "virtio-net-pci,netdev=net0,romfile=" +
			offloads,
		"-device", "virtio-rng-pci", "-serial", "stdio"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the machine's console:\n%s", lab.Tail(qemu.Output(), 30))
		}
		qemu.Kill()
	})
	for end := time.Now().Add(2 * lab.Patience); ; time.Sleep(200 * time.Millisecond) {
		if out, err := m.try(10, "uname -r"); err == nil {
			t.Logf("kernel %s", strings.TrimSpace(out))
			break
		} else if !qemu.Running() || time.Now().After(end) {
			t.Fatalf("no machine: %v\n%s", err, lab.Tail(qemu.Output(), 30))
		}
	}
}

// start starts a command line in the machine.
func (m *machine) start(seconds int, line string) (*lab.Process, error) {
	return m.startAt(address, seconds, line)
}

// startAt is start through another address of the machine.
func (m *machine) startAt(address string, seconds int, line string) (*lab.Process, error) {
	return m.host.Start("bash", "-c", `exec 3<>/dev/tcp/$0/99 && printf '%s\n' "$1" >&3 && cat <&3`, address,
		fmt.Sprintf("%d %s", seconds, line))
}

// ended waits for the end of a command from start.
func ended(p *lab.Process, seconds int) (string, error) {
	if err := p.Wait(time.Duration(seconds+20) * time.Second); err != nil {
		return p.Output(), err
	}
	out, ok := strings.CutSuffix(p.Output(), "status 0\n")
	if !ok {
		return out, fmt.Errorf("no success in the machine")
	}
	return out, nil
}

// try runs a command line in the machine.
func (m *machine) try(seconds int, line string) (string, error) {
	p, err := m.start(seconds, line)
	if err != nil {
		return "", err
	}
	return ended(p, seconds)
}

// run is try for commands that must succeed.
func (m *machine) run(seconds int, line string) {
	m.t.Helper()
	if out, err := m.try(seconds, line); err != nil {
		m.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// line makes a command line for the machine, argv one for the host.
func (m *machine) line(line, server string) string {
	return strings.NewReplacer("@", server, "%", address, "#", guestGID, preloaded, "LD_PRELOAD="+preloadLibrary+" ",
		busybox, "/bin/busybox").Replace(line)
}

func (m *machine) argv(line, server string) []string {
	argv := strings.Fields(strings.NewReplacer("@", server, "%", m.host.Address, "#", hostGID,
		busybox, filepath.Join(m.dir, "busybox")).Replace(line))
	for i, arg := range argv {
		if arg == "wirevec" || arg == "socketecho" {
			argv[i] = filepath.Join(m.dir, arg)
		}
	}
	if strings.HasPrefix(line, preloaded) {
		argv = append([]string{"sh", "-c", `LD_PRELOAD=$LD_PRELOAD:` + preloadLibrary + ` exec "$@"`}, argv...)
	}
	return argv
}

// startServer starts a server in the machine and waits until it listens.
func (m *machine) startServer(seconds int, p *program) (*lab.Process, error) {
	line := p.server
	s, err := m.start(seconds, m.line(line, address))
	if err != nil {
		return nil, err
	}
	if p.ready != "" {
		return s, awaits(s, p.ready)
	}
	if out, err := m.try(20, "until ss -Htln | grep -qv ':99 ' || rdma resource show cm_id | grep -q LISTEN; do sleep 0.1; done"); err != nil {
		m.kill(line)
		return nil, fmt.Errorf("%s does not listen: %w\n%s\n%s", line, err, out, s.Output())
	}
	return s, nil
}

// awaits waits until a server has printed something.
func awaits(s *lab.Process, text string) error {
	for end := time.Now().Add(lab.Patience); !strings.Contains(s.Output(), text); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) || !s.Running() {
			s.Kill()
			return fmt.Errorf("no %q in %q", text, s.Output())
		}
	}
	return nil
}

// startHere starts a server on the host and waits until it listens.
func (m *machine) startHere(p *program) (*lab.Process, error) {
	argv := m.argv(p.server, m.host.Address)
	if p.ready == "" {
		return lab.Pair{ServerNode: m.host, Server: argv, TCPPort: p.tcp}.StartServer()
	}
	s, err := m.host.Exec(argv...)
	if err == nil {
		err = awaits(s, p.ready)
	}
	return s, err
}

// kill kills the programs of a name in the machine.
func (m *machine) kill(line string) {
	m.run(10, "pkill -9 -x "+strings.Fields(strings.TrimPrefix(strings.TrimPrefix(line, unbuffered), preloaded))[0]+"; true")
}

// kernelServes runs a server in the machine and a client on the host.
func (m *machine) kernelServes(seconds int, p *program) (string, error) {
	s, err := m.startServer(seconds, p)
	if err != nil {
		return "", err
	}
	c, err := m.host.Exec(m.argv(p.client, address)...)
	if err != nil {
		return "", err
	}
	clientErr := c.Wait(time.Duration(seconds) * time.Second)
	if clientErr == nil && p.after != "" {
		_, clientErr = m.try(seconds, m.line(p.after, address))
	}
	if clientErr != nil || p.stays {
		m.kill(p.server)
	}
	out, serverErr := ended(s, seconds)
	if p.stays {
		serverErr = nil
	}
	return both(c.Output(), clientErr, out, serverErr)
}

// urdmaServes runs a server on the host and a client in the machine.
func (m *machine) urdmaServes(seconds int, p *program) (string, error) {
	s, err := m.startHere(p)
	if err != nil {
		return "", err
	}
	out, clientErr := m.try(seconds, m.line(p.client, m.host.Address))
	if clientErr == nil && p.after != "" {
		argv := m.argv(p.after, m.host.Address)
		clientErr = exec.Command(argv[0], argv[1:]...).Run()
	}
	if clientErr != nil || p.stays {
		s.Kill()
	}
	serverErr := s.Wait(time.Duration(seconds) * time.Second)
	if p.stays {
		serverErr = nil
	}
	return both(out, clientErr, s.Output(), serverErr)
}

// killed kills one side of a rping; the other must end by itself.
func (m *machine) killed(kernelServes, server bool) error {
	const serve, ask, seconds = "rping -s -a @ -v -C 1000000", "rping -c -a @ -v -C 1000000", 30
	var host, guest *lab.Process
	var err error
	if kernelServes {
		if guest, err = m.startServer(2*seconds, &program{server: serve}); err == nil {
			host, err = m.host.Exec(m.argv(ask, address)...)
		}
	} else {
		if host, err = m.startHere(&program{server: serve}); err == nil {
			guest, err = m.start(2*seconds, strings.ReplaceAll(ask, "@", m.host.Address))
		}
	}
	if err != nil {
		return err
	}
	if err := awaits(host, "ping data"); err != nil {
		return err
	}
	if kernelServes == server { // the side in the machine
		m.kill("rping")
		if err := host.Wait(seconds * time.Second); errors.Is(err, lab.ErrTimeout) {
			return err
		}
		return nil
	}
	host.Kill()
	defer m.kill("rping") // it notices the end, but does not always exit
	for end := time.Now().Add(seconds * time.Second); guest.Running() &&
		!strings.Contains(guest.Output(), "DISCONNECT EVENT"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("the program in the machine hears nothing of the end: %s", guest.Output())
		}
	}
	return nil
}

func both(client string, clientErr error, server string, serverErr error) (string, error) {
	out := client + "\n" + server
	if clientErr != nil || serverErr != nil {
		return out, fmt.Errorf("client: %v\n%s\nserver: %v\n%s", clientErr, lab.Tail(client, 12), serverErr,
			lab.Tail(server, 12))
	}
	return out, nil
}
