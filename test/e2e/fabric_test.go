package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// infiniBand is the ports of a urdmad that programs see as InfiniBand, over loopback; the last bytes of their
// addresses are their LIDs.
func infiniBand(addresses ...string) lab.Config {
	var ports []any
	for _, a := range addresses {
		ports = append(ports, lab.Config{"vdev": "loopback", "transport": "ib", "ipv4_address": a + "/24"})
	}
	return lab.Config{"ports": ports}
}

// patient is a program's time-out for the answer to a MAD, in ms: none is lost, but the machine may be busy.
const patient = "50000"

// says runs a program and looks for regular expressions in its output; fails: the program must end with an error.
func says(t *testing.T, n *lab.Node, line string, fails bool, want ...string) {
	t.Helper()
	argv := strings.Fields(line)
	need(t, argv[0])
	if !fails && argv[0] != "ibstat" && argv[0] != "ibstatus" { // these read only sysfs
		argv = slices.Insert(argv, 1, "-t", patient)
	}
	out, err := n.Run(lab.Patience, argv...)
	if (err != nil) != fails {
		t.Errorf("%s: %v\n%s", line, err, lab.Tail(out, 30))
	}
	for _, w := range want {
		if !regexp.MustCompile(w).MatchString(out) {
			t.Errorf("%s doesn't say %q:\n%s", line, w, lab.Tail(out, 60))
		}
	}
	if !fails && strings.Contains(out, "ibwarn") {
		t.Errorf("%s warns:\n%s", line, lab.Tail(out, 30))
	}
}

// TestInfiniBandDiags runs Debian's infiniband-diags, unmodified, on the subnet of a urdmad with two ports, LIDs
// 0x101 and 0x202; the switch between them has LID 1.
func TestInfiniBandDiags(t *testing.T) {
	whole(t)
	need(t, "ibnetdiscover")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	n, _ := labtest.Join(t, lab.Loopback, infiniBand("198.18.1.1", "198.18.2.2"))
	const guid0, guid1, guidSwitch = "0x006cc6fffe120101", "0x006cc6fffe120202", "0x016cc6fffe120101"
	host = regexp.QuoteMeta(host)
	for _, c := range []struct {
		line string
		want []string
	}{
		{"ibstat", []string{"CA 'urdma0'", "CA 'urdma1'", "State: Active", "Base lid: 257", "Base lid: 514", "SM lid: 1\n",
			"Node GUID: " + guid0, "Port GUID: " + guid1}},
		{"ibstatus", []string{"'urdma1' port 1 status", `base lid:\s+0x202`, `sm lid:\s+0x1\n`, "4: ACTIVE"}},
		{"ibaddr -C urdma0", []string{"GID fe80::6c:c6ff:fe12:101 LID start 0x101 end 0x101"}},
		{"sminfo -C urdma0", []string{"sm lid 1 sm guid 0x16cc6fffe120101, activity count .* state 3 SMINFO_MASTER"}},
		{"smpquery -C urdma0 nodeinfo -D 0", []string{`NodeType:\.+Channel Adapter`, `PortGuid:\.+` + guid0}},
		{"smpquery -C urdma0 nodeinfo -D 0,1,2", []string{`PortGuid:\.+` + guid1}},
		{"smpquery nodedesc 0x202", []string{host + " urdma1"}},
		{"smpquery portinfo 0x202 1", []string{`Lid:\.+514`, `LinkState:\.+Active`, `PhysLinkState:\.+LinkUp`,
			`LinkWidthActive:\.+4X`}},
		{"smpquery switchinfo 1", []string{`LinearFdbTop:\.+514`}},
		{"smpquery pkeys 0x101", []string{"0: 0xffff 0x0000", "1 pkeys capacity"}},
		{"smpquery sl2vl 0x101", []string{`SL2VL table: Lid 257`, `\| 0\| 0\|`}},
		{"smpquery vlarb 0x101", []string{"LowCap 0 HighCap 0"}},
		{"smpquery guidinfo 0x202", []string{guid1, "1 guids capacity"}},
		{"smpdump 0x202 0x10", []string{fmt.Sprintf("^%02x%02x", host[0], host[1])}},
		{"smpdump -D 0,1 0x11", []string{"^0101 0202"}},
		{"perfquery -C urdma0", []string{"Port counters: Lid 257 port 1", `PortXmitData:\.+0`}},
		{"perfquery -x 0x202 1", []string{"Port extended counters: Lid 514 port 1", `PortUnicastXmitPkts:\.+0`}},
		{"perfquery -a 1", []string{"Port counters: Lid 1 port 255"}},
		{"perfquery -r 1 2", []string{"Port counters: Lid 1 port 2"}},
		{"ibportstate 0x202 1 query", []string{`LinkState:\.+Active`, "Switch PortInfo|Peer PortInfo|CA/RT PortInfo"}},
		{"ibnetdiscover -C urdma0", []string{`Switch\s+2 "S-` + guidSwitch[2:] + `"\s+# "` + host +
			` switch" base port 0 lid 1 lmc 0`,
			`\[2\]\s+"H-` + guid1[2:] + `"\[1\]\(6cc6fffe120202\)\s+# "` + host + ` urdma1" lid 514 4xQDR`, `Ca\s+1 "H-` +
				guid0[2:] + `"`}},
		{"ibhosts", []string{"Ca\t: " + guid0 + ` ports 1 "` + host + ` urdma0"`, "Ca\t: " + guid1}},
		{"ibswitches", []string{"Switch\t: " + guidSwitch + ` ports 2 "` + host + ` switch" base port 0 lid 1 lmc 0`}},
		{"ibnodes", []string{"Ca\t: " + guid0, "Switch\t: " + guidSwitch}},
		{"iblinkinfo", []string{`1    2\[  \] ==\( 4X          10.0 Gbps Active/  LinkUp\)==>     514    1\[  \] "` + host +
			` urdma1"`}},
		{"ibqueryerrors", []string{"Summary: 3 nodes checked, 0 bad nodes found"}},
		{"ibtracert 0x101 0x202", []string{`\[1\] -> switch port \{` + guidSwitch + `\}\[1\] lid 1-1`, `\[2\] -> ca port \{` +
			guid1 + `\}\[1\] lid 514-514`}},
		{"ibroute 1", []string{`0x0101 001 : \(Channel Adapter portguid ` + guid0, `0x0202 002 : `, "3 valid lids dumped"}},
		{"saquery", []string{`NodeDescription\.+` + host + " urdma0", `NodeDescription\.+` + host + " switch"}},
		{"saquery PIR", []string{`LinkState:\.+Active`, `EndPortLid\.+514`}},
		{"saquery PR --slid 0x101", []string{`dlid\.+514`, `slid\.+257`}},
		{"saquery LR", []string{`ToLID\.+514`}},
		{"saquery SMIR", []string{`GUID\.+` + guidSwitch, `SMState\.+3`}},
		{"saquery CPI", []string{`Base version\.+1`}},
		{"saquery MCMR", nil},
		{"saquery -g", nil},
		{"saquery -s", []string{`EndPortLid\.+1\b`}},
		{"ibroute -M 1", []string{"Multicast mlids", "0 valid mlids dumped"}},
	} {
		t.Run(c.line, func(t *testing.T) { says(t, n, c.line, false, c.want...) })
	}
	t.Run("vendstat", func(t *testing.T) {
		says(t, n, "vendstat -N 0x101", true, "classportinfo query")
	})
	t.Run("ibping", func(t *testing.T) { answers(t, n, "-S -C urdma1", n, "0x202", "ibping") })
	t.Run("ibsysstat", func(t *testing.T) { answers(t, n, "-S -C urdma1", n, "0x202", "ibsysstat") })
	t.Run("ibportstate disable", func(t *testing.T) {
		says(t, n, "ibportstate -C urdma0 1 2 disable", false, `PhysLinkState:\.+Disabled`)
		says(t, n, "ibstat urdma1", false, "State: Down", "Physical state: Polling")
		says(t, n, "iblinkinfo -C urdma0", false, `1    2\[  \] ==\( .*Down/Disabled\)==>`)
		says(t, n, "ibportstate -C urdma0 1 2 enable", false, `LinkState:\.+(Initialize|Active)`)
		says(t, n, "ibstat urdma1", false, "State: Active")
	})
	t.Run("the way back", func(t *testing.T) { // through a port to which no answer comes back
		says(t, n, "ibportstate -C urdma0 1 1 disable", true)
		awaitState(t, n, "urdma0", "State: Down")
		if out, err := n.Urdma("inject", "port", "urdma0", "up"); err != nil {
			t.Fatal(err, out)
		}
		awaitState(t, n, "urdma0", "State: Active")
		says(t, n, "iblinkinfo -C urdma0", false, `1    1\[  \] ==\(.*Active/  LinkUp`)
	})
	t.Run("urdma inject", func(t *testing.T) { // as the owner of ports
		for _, c := range []struct{ state, shows, link string }{{"down", "State: Down", "Down/ Polling"},
			{"up", "State: Active", "Active/  LinkUp"}} {
			if out, err := n.Urdma("inject", "port", "urdma1", c.state); err != nil {
				t.Fatal(err, out)
			}
			awaitState(t, n, "urdma1", c.shows)
			says(t, n, "iblinkinfo -C urdma0", false, `1    2\[  \] ==\(.*`+c.link)
		}
	})
	t.Run("nothing there", func(t *testing.T) { says(t, n, "smpquery -t 20 nodeinfo 0x777", true, "query failed") })
}

// awaitState waits until ibstat has the state of a device's port.
func awaitState(t *testing.T, n *lab.Node, device, state string) {
	t.Helper()
	await(t, state, func() (bool, string) {
		out, _ := n.Run(lab.Patience, "ibstat", device)
		return strings.Contains(out, state), out
	})
}

// TestPortDisabled: over a wire ibportstate takes a port down for programs and for their data. It uses another port,
// since a disabled port carries no answer.
func TestPortDisabled(t *testing.T) {
	whole(t)
	need(t, "ibportstate")
	need(t, "ibv_asyncwatch")
	a, b := labtest.Join(t, lab.Memif, nil)
	addPort(t, a, lab.Config{"vdev": "loopback", "ipv4_address": "198.18.7.7/24"})
	if err := b.WaitLink(lab.Patience); err != nil {
		t.Fatal(err)
	}
	works(t, a, b)
	watch := watchEvents(t, a) // of the first device
	for _, c := range []struct {
		do, event, state string
		passes           bool
	}{{"disable", "IBV_EVENT_PORT_ERR", "PORT_DOWN", false}, {"enable", "IBV_EVENT_PORT_ACTIVE", "PORT_ACTIVE", true}} {
		says(t, a, "ibportstate -C urdma1 -D 0,1 1 "+c.do, false)
		awaitEvents(t, watch, c.event, "port 1")
		if out, err := a.Run(lab.Patience, "ibv_devinfo", "-d", "urdma0"); err != nil || !strings.Contains(out, c.state) {
			t.Errorf("after %s: %v, expected %s:\n%s", c.do, err, c.state, out)
		}
		if out, err := b.Urdma("ping", "-c", "1", a.Address); (err == nil) != c.passes {
			t.Errorf("after %s: urdma ping: %v\n%s", c.do, err, out)
		}
	}
	says(t, a, "ibstat urdma0", false, "State: Active")
	works(t, a, b)
	watch.Kill()
}

// addPort starts a node's urdmad again with one more port after its own.
func addPort(t *testing.T, n *lab.Node, p lab.Config) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Directory(), "urdma.json"))
	var c lab.Config
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	ports, _ := c["ports"].([]any)
	for _, do := range []func() error{n.StopDaemon, func() error { return n.Change("ports", append(ports, p)) },
		n.StartDaemon} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}

// answers runs a program's server at one node and its client, with the server's LID, at another.
func answers(t *testing.T, at *lab.Node, serve string, from *lab.Node, lid, program string) {
	t.Helper()
	need(t, program)
	server, err := at.Exec(append([]string{program}, strings.Fields(serve)...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	args := []string{program, "-t", "1000", "-C", "urdma0", lid} // nothing answers before the server listens
	if program == "ibping" {
		args = append(args, "-c", "1")
	}
	want := map[string]string{"ibping": "1 packets transmitted, 1 received, 0% packet loss",
		"ibsysstat": "sysstat ping succeeded"}[program]
	await(t, want, func() (bool, string) {
		out, _ := from.Run(lab.Patience, args...)
		return strings.Contains(out, want), out + server.Output()
	})
}

// TestOpenSM: Debian's opensm takes over from urdmad's subnet manager and sweeps the subnet; when it has ended,
// urdmad's is active again.
func TestOpenSM(t *testing.T) {
	whole(t)
	need(t, "opensm")
	n, _ := labtest.Join(t, lab.Loopback, infiniBand("198.18.1.1", "198.18.2.2"))
	dir := filepath.Join(n.Directory(), "opensm")
	sm, err := n.Exec("sh", "-c", fmt.Sprintf("mkdir -p %s && export OSM_TMP_DIR=%s OSM_CACHE_DIR=%s && exec opensm -f %s/log -D 3 -d 2", dir, dir, dir, dir))
	if err != nil {
		t.Fatal(err)
	}
	log := func() string {
		b, _ := os.ReadFile(dir + "/log")
		return string(b) + sm.Output()
	}
	watch := watchEvents(t, n)
	defer watch.Kill()
	await(t, "opensm's subnet", func() (bool, string) { return strings.Contains(log(), "SUBNET UP"), log() })
	says(t, n, "sminfo", false, "sm lid 257 sm guid 0x6cc6fffe120101, .*SMINFO_MASTER")
	says(t, n, "ibstat urdma1", false, "State: Active", "Base lid: 514", "SM lid: 257")
	says(t, n, "saquery -C urdma1", false, `port_guid\.+0x006cc6fffe120202`, `port_guid\.+0x016cc6fffe120101`)
	says(t, n, "ibtracert 0x101 0x202", false, `\[2\] -> ca port`)
	if strings.Contains(log(), "ERR") {
		t.Errorf("opensm's log:\n%s", log())
	}
	for _, state := range []string{"down", "up"} { // the switch reports it
		if out, err := n.Urdma("inject", "port", "urdma1", state); err != nil {
			t.Fatal(err, out)
		}
		await(t, "State: "+map[string]string{"down": "Down", "up": "Active"}[state], func() (bool, string) {
			out, _ := n.Run(lab.Patience, "ibstat", "urdma1")
			return strings.Contains(out, map[string]string{"down": "State: Down", "up": "State: Active"}[state]), out
		})
	}
	if !regexp.MustCompile(`Generic Notice type:1 num:128`).MatchString(log()) {
		t.Errorf("no trap:\n%s", lab.Tail(log(), 30))
	}
	sm.Kill()
	await(t, "urdmad's subnet manager", func() (bool, string) {
		out, _ := n.Run(lab.Patience, "sminfo", "-t", patient)
		return strings.Contains(out, "sm lid 1 ") && strings.Contains(out, "SMINFO_MASTER"), out
	})
	says(t, n, "ibstat urdma1", false, "State: Active", "SM lid: 1\n")
	for _, event := range []string{"IBV_EVENT_SM_CHANGE", "IBV_EVENT_CLIENT_REREGISTER"} {
		await(t, event, func() (bool, string) { return strings.Contains(watch.Output(), event), watch.Output() })
	}
}

// TestSimulatedFabric runs the tools on 32 simulated hosts at 4 switches, all linked with each other; urdmad's ports
// are connected to the first two. It does the same with ibnetdiscover's output of that subnet.
func TestSimulatedFabric(t *testing.T) {
	whole(t)
	need(t, "ibnetdiscover")
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} { // urdmad runs as another user
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "topology")
	text, err := os.ReadFile("../../examples/fabric.topology")
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	extra := infiniBand("198.18.1.1", "198.18.2.2")
	extra["fabric"] = file
	n, _ := labtest.Join(t, lab.Loopback, extra)
	answers(t, n, "-S -C urdma1", n, "514", "ibping")
	answers(t, n, "-S -C urdma1", n, "514", "ibsysstat")
	for _, c := range []struct {
		line string
		want []string
	}{
		{"ibtracert 0x101 0x202", []string{`\[1\] -> switch port \{0x02c21deb40f77400\}\[9\] lid 1-1 "switch1"`,
			`\[36\] -> switch port \{0x02c220eb40f77900\}\[36\] lid 2-2 "switch2"`, `\[9\] -> ca port .*\[1\] lid 514-514`}},
		{"ibroute 1 514 514", []string{"0x0202 036 :"}},
		{"smpquery -C urdma0 nodedesc -D 0,1,36,1", []string{"host2"}},
		{"smpquery nodeinfo 8", []string{`NodeType:\.+Channel Adapter`}},
		{"ibqueryerrors", []string{"38 nodes checked, 0 bad nodes found"}},
		{"iblinkinfo", []string{`"host32"`}},
		{"saquery PR --slid 0x101 --dlid 0x202", []string{`dlid\.+514`}},
	} {
		says(t, n, c.line, false, c.want...)
	}
	// Each route around is found while the link is down.
	says(t, n, "ibportstate -C urdma0 1 36 disable", false, "Disabled")
	says(t, n, "ibtracert 0x101 0x202", false, `lid 1-1 "switch1"(.*\n){2}.*lid 2-2 "switch2"`)
	says(t, n, "perfquery 1 36", false, `LinkDownedCounter:\.+1`)
	says(t, n, "ibportstate -C urdma0 1 36 enable", false)
	says(t, n, "ibtracert 0x101 0x202", false, `lid 1-1 "switch1"\n.*lid 2-2 "switch2"`)

	discovered := discover(t, n)
	if hosts := strings.Count(discovered, "\nCa\t"); hosts != 34 {
		t.Errorf("%d hosts, expected 34", hosts)
	}
	if err := os.WriteFile(file, []byte(discovered), 0o644); err != nil {
		t.Fatal(err)
	}
	again, _ := labtest.Join(t, lab.Loopback, extra)
	if got := discover(t, again); got != discovered {
		t.Errorf("of what it printed itself ibnetdiscover prints\n%s\nexpected\n%s", got, discovered)
	}
	injectIntoSubnet(t, again)
}

// injectIntoSubnet injects errors at a simulated port, and at one of urdmad's.
func injectIntoSubnet(t *testing.T, n *lab.Node) {
	for _, c := range []struct {
		statement, line string
		want            []string
	}{
		{"errors switch1/36 symbol_error=50 link_downed=2", "perfquery -t " + patient + " 1 36",
			[]string{`SymbolErrorCounter:\.+50\n`, `LinkDownedCounter:\.+2\n`}},
		{"errors 0x02c21deb40f77400/35 VL15_dropped=99", "ibqueryerrors -t " + patient,
			[]string{`port 36: \[SymbolErrorCounter == 50\]`, `port 35: .*\[VL15Dropped == 99\]`}},
		{"errors urdma1 port_rcv_errors=9", "perfquery -t " + patient + " 514 1", []string{`PortRcvErrors:\.+9\n`}},
		{"errors urdma1 port_rcv_errors", "cat /sys/class/infiniband/urdma1/ports/1/counters/port_rcv_errors",
			[]string{`^10\n`}},
	} {
		if out, err := n.Urdma("inject", c.statement); err != nil {
			t.Errorf("%s: %v\n%s", c.statement, err, out)
			continue
		}
		for _, want := range c.want { // the command does not wait for the effect
			await(t, c.statement+": "+want, func() (bool, string) {
				out, _ := n.Run(lab.Patience, strings.Fields(c.line)...)
				return regexp.MustCompile(want).MatchString(out), out
			})
		}
	}
	for _, statement := range []string{"errors nobody symbol_error", "errors switch1 symbol_error",
		"errors switch1/99 symbol_error", "port switch1/1 down"} {
		if out, err := n.Urdma("inject", statement); err == nil {
			t.Errorf("%s: accepted: %s", statement, out)
		}
	}
}

// discover returns ibnetdiscover's output without the time.
func discover(t *testing.T, n *lab.Node) string {
	t.Helper()
	p, err := n.Exec("ibnetdiscover", "-t", patient)
	if err == nil {
		err = p.Wait(lab.Patience)
	}
	if err != nil {
		t.Fatal(err, p.Output())
	}
	return regexp.MustCompile("(?m)^# Topology file:.*\n").ReplaceAllString(p.Stdout(), "")
}
