package serve

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"urdma/config"
)

// inNamespace runs the calling test in a child process with its own network namespace and returns true. In that child
// it returns false, and the test continues.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv("URDMA_TEST_NETNS") == t.Name() {
		return false
	}
	namespace := []string{"--user", "--map-root-user", "--net"}
	if os.Geteuid() == 0 {
		namespace = namespace[2:]
	}
	if out, err := exec.Command("unshare", append(namespace, "ip", "link")...).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: needs a network namespace and ip: %v, %s", err, out)
	}
	c := exec.Command("unshare", append(namespace, os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")...)
	c.Env = append(os.Environ(), "URDMA_TEST_NETNS="+t.Name())
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("in the namespace: %v\n%s", err, out)
	}
	t.Logf("in the namespace:\n%s", out)
	return true
}

// TestPlaceNotTemporary: if the kernel chooses a port's address, it is one that lasts, even if programs normally get
// temporary ones (RFC 8981).
func TestPlaceNotTemporary(t *testing.T) {
	if inNamespace(t) {
		return
	}
	const public = "2001:db8:7::9"
	script := `ip link add v0 type veth peer name v1
echo 2 >/proc/sys/net/ipv6/conf/v0/use_tempaddr
echo 0 >/proc/sys/net/ipv6/conf/v0/accept_dad
ip link set v0 up
ip link set v1 up
ip address add ` + public + `/64 dev v0 mngtmpaddr nodad
ip route add default via fe80::1 dev v0`
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: needs a veth pair with temporary addresses: %v, %s", err, out)
	}
	for give := time.Now().Add(10 * time.Second); usual(t).String() == public; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(give) {
			t.Skip("SKIPPED: the kernel makes no temporary addresses")
		}
	}
	cfg := &config.Config{Ports: []config.Port{{Vdev: "udp", Address: netip.MustParsePrefix("::/64")}}}
	if err := placePorts(cfg); err != nil {
		t.Fatal(err)
	}
	if got := cfg.Ports[0].Address.String(); got != public+"/64" {
		t.Errorf("the port is at %s, and %s lasts", got, public)
	}
}

// TestPlaceWithoutRoute: two machines on a cable need no default route. If there are several addresses, the error
// lists them and says what to write.
func TestPlaceWithoutRoute(t *testing.T) {
	if inNamespace(t) {
		return
	}
	place := func(script string) (string, error) {
		if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: needs a veth pair: %v, %s", err, out)
		}
		cfg := &config.Config{Ports: []config.Port{{Vdev: "udp", Address: netip.MustParsePrefix("0.0.0.0/24")}}}
		err := placePorts(cfg)
		return cfg.Ports[0].Address.String(), err
	}
	at, err := place("ip link set lo up; ip link add v0 type veth peer name v1; ip address add 10.77.0.1/24 dev v0; ip link set v0 up")
	if err != nil || at != "10.77.0.1/24" {
		t.Errorf("the port is at %s, %v; the only address is 10.77.0.1", at, err)
	}
	_, err = place("ip address add 10.78.0.1/24 dev v0")
	const want = `and the addresses of this machine are [10.77.0.1 10.78.0.1]; expected, in a file for --config: { "ports": [ { "vdev": "udp", "ipv4_address": "ADDRESS" } ] }`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, expected %s", err, want)
	}
}

// usual returns the address from which the kernel lets programs send.
func usual(t *testing.T) netip.Addr {
	t.Helper()
	c, err := net.Dial("udp6", anyHost6)
	if err != nil {
		return netip.MustParseAddr("2001:db8:7::9") // none is ready yet
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
}
