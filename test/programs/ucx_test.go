package programs

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/programtest"
)

// TestUCX: UCX's transports on verbs move data by each of their operations, on a port shown as ib and as roce; as
// roce they send a datagram to learn which header it has.
func TestUCX(t *testing.T) {
	need(t, "ucx_perftest")
	n, _ := join(t, lab.Loopback, lab.Config{"log_level": "info"})
	for _, c := range []struct{ transport, layer, test string }{
		{"ib", "ud_verbs", "am_lat"}, {"roce", "ud_verbs", "am_lat"}, {"roce", "rc_verbs", "am_lat"},
		{"ib", "rc_verbs", "put_lat"}, {"ib", "rc_verbs", "fadd"}, {"roce", "rc_verbs", "cswap"},
	} {
		t.Run(c.transport+"/"+c.layer+"/"+c.test, func(t *testing.T) { perftestOfUCX(t, n, c.transport, c.layer, c.test) })
	}
}

func perftestOfUCX(t *testing.T, n *lab.Node, transport, layer, test string) {
	t.Helper()
	port := programtest.FreePort(t)
	argv := []string{"ucx_perftest", "-p", strconv.Itoa(port), "-d", "urdma0:1", "-x", layer, "-t", test, "-n", "100", "-w",
		"5"}
	// Debian 13's would use MPI without a terminal; Debian 12's has no such option.
	if help, _ := exec.Command("ucx_perftest", "-h").CombinedOutput(); strings.Contains(string(help), " -P <0|1>") {
		argv = append(argv, "-P", "0")
	}
	pair := lab.Pair{ServerNode: n, ClientNode: n, TCPPort: port, Server: argv,
		Client: append(slices.Clone(argv), "127.0.0.1")}
	pair.ShownAs(transport)
	r, err := pair.Run()
	if err != nil || !strings.Contains(r.Client, "Final:") {
		t.Errorf("%v\nclient:\n%s\nserver:\n%s", err, r.Client, r.Server)
	}
}
