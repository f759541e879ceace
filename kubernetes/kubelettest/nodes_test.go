package kubelettest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"urdma/test/lab"
)

// The users and the group of the chart's values, and the user of distroless images.
const (
	daemonUser, sharedGroup, programUser = 4001, 4100, 65532
)

// node is a network namespace, whose urdmad and urdma-kubelet run in containers as the chart says, and a kubelet.
type node struct {
	e         *engine
	address   string
	dir       string
	container container // the network, and the directories of the node
	plugin    *Plugin
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

// daemon is the name of urdmad's container.
func (n *node) daemon() string { return "urdmad-" + filepath.Base(n.dir) }

func newNode(t *testing.T, e *engine, name, address string, ns *lab.Namespace, template string) *node {
	t.Helper()
	n := &node{e: e, address: address, dir: filepath.Join(e.l.Dir, name)}
	if err := ns.Run("ip", "address", "add", address+"/24", "dev", "veth0"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"socket", "cdi", "library", "kubelet"} {
		if err := os.MkdirAll(n.path(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kubelet := New(t, n.path("kubelet"))
	kubelet.Start()
	config := n.path("urdma.json")
	write(t, config, fmt.Sprintf(`{"socket": %q, "socket_group": "%d", "ports": [{"vdev": "udp", "ipv4_address": "0.0.0.0"}]}`,
		n.path("socket/urdmad.sock"), sharedGroup))
	n.container = container{network: "/proc/" + ns.PID() + "/ns/net", volumes: []string{n.path("socket")}}
	prepare := n.container
	prepare.args = []string{"urdma-kubelet", "prepare", fmt.Sprint("--user=", daemonUser), fmt.Sprint("--group=", sharedGroup),
		n.path("socket")}
	prepare.caps = []string{"CAP_CHOWN", "CAP_FOWNER", "CAP_FSETID"}
	if p := e.start(prepare); p.Wait(lab.Patience) != nil {
		t.Fatalf("prepare:\n%s", p.Output())
	}
	urdmad := n.container
	urdmad.name = n.daemon()
	urdmad.args, urdmad.uid, urdmad.gid = []string{"urdmad", "--config", config}, daemonUser, sharedGroup
	urdmad.volumes = append([]string{config}, urdmad.volumes...)
	e.start(urdmad)
	plugin := n.container
	plugin.args = []string{"urdma-kubelet", "--socket", n.path("socket/urdmad.sock"), fmt.Sprint("--group=", sharedGroup),
		"--kubelet", n.path("kubelet"), "--library", n.path("library"), "--cdi", n.path("cdi"), "--count", fmt.Sprint(count),
		"--resource", "rdma/urdma", "--specification", template}
	plugin.gid = sharedGroup
	plugin.volumes = append([]string{n.path("kubelet/device-plugins"), n.path("library"), n.path("cdi"), template,
		filepath.Dir(e.l.Program("liburdma.so"))}, plugin.volumes...)
	e.start(plugin)
	n.plugin = kubelet.Registered()
	n.plugin.Await(api.Healthy, count)
	return n
}

// program runs a program in a container of a pod that requests rdma/urdma: 1, as an ordinary user, without a network.
func (n *node) program(args ...string) *lab.Process {
	n.e.t.Helper()
	return n.e.start(container{args: args, uid: programUser, gid: programUser, devices: n.plugin.Devices("0"),
		cdi: n.path("cdi")})
}

// awaitListener waits until a program of the node listens at a port of rdma_cm.
func (n *node) awaitListener(port int, server *lab.Process) {
	n.e.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		out, err := n.e.exec(fmt.Sprintf("%d:%d", daemonUser, sharedGroup), n.daemon(), "urdma", "show", "listener",
			"--socket", n.path("socket/urdmad.sock"))
		if strings.Contains(out, fmt.Sprint(":", port)) {
			return
		}
		if time.Now().After(end) || !server.Running() {
			n.e.t.Fatalf("nobody listens at port %d: %v: %s\n%s", port, err, out, server.Output())
		}
	}
}

// TestNodes runs rping, ib_write_bw and an MPI job between two nodes, each program in a container with what the device
// plugin allocated.
func TestNodes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root: crun makes containers of other users")
	}
	if _, err := exec.LookPath("crun"); err != nil {
		t.Skip("SKIPPED: needs crun: make deps, or .ci/deps container")
	}
	l := newLab(t)
	template := specification(t, l)
	e := newEngine(t, l, program(t), l.Program("urdmad"), l.Program("urdma"), "rping", "ib_write_bw")
	if p := e.start(container{args: []string{"urdma-kubelet", "--version"}}); p.Wait(lab.Patience) != nil {
		t.Skipf("SKIPPED: crun starts no container here: %s", p.Output())
	}
	nsA, nsB, err := l.Veth(1500)
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	a := newNode(t, e, "a", "10.77.0.1", nsA, template)
	b := newNode(t, e, "b", "10.77.0.2", nsB, template)
	testRping(t, a, b)
	testBandwidth(t, a, b)
	t.Run("MPI", func(t *testing.T) { testMPI(t, a, b) })
	p := e.start(container{args: []string{"rping", "-s", "-a", a.address}, uid: programUser, gid: programUser})
	if err := p.Wait(lab.Patience); err == nil {
		t.Errorf("a container that has not requested the device uses it:\n%s", p.Output())
	}
}

func testRping(t *testing.T, a, b *node) {
	t.Helper()
	server := a.program("rping", "-s", "-a", a.address, "-C", "10", "-v")
	a.awaitListener(7174, server)
	client := b.program("rping", "-c", "-a", a.address, "-C", "10", "-v")
	if err := client.Wait(lab.Patience); err != nil || !strings.Contains(client.Output(), "ping data: rdma-ping-9") {
		t.Errorf("%v\n%s", err, client.Output())
	}
	if err := server.Wait(lab.Patience); err != nil {
		t.Errorf("%v\n%s", err, server.Output())
	}
}

func testBandwidth(t *testing.T, a, b *node) {
	t.Helper()
	for try := 1; ; try++ {
		server := a.program("ib_write_bw", "-R", "-F", "-n", "1000")
		a.awaitListener(18515, server)
		client := b.program("ib_write_bw", "-R", "-F", "-n", "1000", a.address)
		errs := []error{client.Wait(lab.Patience), server.Wait(lab.Patience)}
		rows, err := lab.ParsePerftest(client.Output())
		if errs[0] == nil && errs[1] == nil && err == nil && rows[0].Bytes == 65536 {
			t.Logf("%s", client.Stdout())
			return
		}
		if try == 5 || !lab.Unmeasured(client.Output()+server.Output()) {
			t.Fatalf("%v\n%s\n%s", errs, server.Output(), client.Output())
		}
		t.Log("perftest could not measure the processor's clock on a busy machine; again")
	}
}
