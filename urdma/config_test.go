package main

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"urdma/config"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		write(t, file, got, 0o644)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is out of date (go test ./urdma -update writes it); got:\n%s", file, got)
	}
}

func TestConfigCommands(t *testing.T) {
	const good, bad = "../config/testdata/good/udp.json", "../config/testdata/bad/unknown-typo.json"
	const wrong = "../config/testdata/bad/several.json"
	for _, c := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{"config", "check", good}, 0, good + ": correct\n", ""},
		{[]string{"config", "check", bad}, exitUsage, "",
			bad + `:2: stats_timer_intervall: found an unknown property; did you mean "stats_timer_interval"?` + "\n"},
		{[]string{"config", "check", "/no/such.json"}, exitUsage, "",
			"/no/such.json: found a file that cannot be read (no such file or directory), allowed: a readable file\n"},
		{[]string{"config", "check"}, exitUsage, "",
			"urdma config check: FILE is missing; use: urdma config check FILE\n"},
		{[]string{"ping"}, exitUsage, "", "urdma ping: PEER is missing; use: urdma ping PEER [flags]\n"},
		{[]string{"end", "qp"}, exitUsage, "", "urdma end: ID is missing; use: urdma end qp|client ID [flags]\n"},
		{[]string{"status", "all"}, exitUsage, "",
			"urdma status: too many arguments, the last is \"all\"; use: urdma status [flags]\n"},
		{[]string{"status", "--jsno"}, exitUsage, "",
			"urdma status: unknown flag: --jsno; did you mean --json? (urdma status --help tells more)\n"},
		{[]string{"config", "show", "--nonsense"}, exitUsage, "",
			"urdma config show: unknown flag: --nonsense (urdma config show --help tells more)\n"},
		{[]string{"nonsense"}, exitUsage, "", "urdma: unknown command \"nonsense\" for \"urdma\"; use: urdma [flags]\n"},
		{[]string{"statsu"}, exitUsage, "",
			"urdma: unknown command \"statsu\" for \"urdma\"; did you mean \"status\"?; use: urdma [flags]\n"},
		{[]string{"config", "chek"}, exitUsage, "",
			"urdma config: unknown command \"chek\" for \"urdma config\"; did you mean \"check\"?; use: urdma config [flags]\n"},
		{[]string{"version"}, 0, "urdma devel\n", ""},
		{[]string{"--version"}, 0, "urdma devel\n", ""},
	} {
		r := run(t, nil, c.args...)
		if r.status.ExitStatus() != c.status || r.stdout != c.stdout || r.stderr != c.stderr {
			t.Errorf("%q: status %d\nstdout %q\nstderr %q\nwant %+v", c.args, r.status.ExitStatus(), r.stdout, r.stderr, c)
		}
	}
	dir := t.TempDir()
	odd := filepath.Join(dir, "odd.json")
	write(t, odd, `{"ports":[{"vdev":"loopback","ipv4_address":"10.0.0.1/16"},{"vdev":"loopback","ipv4_address":"10.0.`+
		`1.1/24"}],"workers":[{"core":4000}]}`, 0o600)
	r := run(t, nil, "config", "check", odd)
	if r.status.ExitStatus() != 0 || strings.Count(r.stderr, "warning: "+odd+":1: ") != 2 ||
		!strings.Contains(r.stderr, "workers[0].core: found 4000") {
		t.Errorf("check of what is seldom meant: %+v", r)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, nil, "config", "check", fifo); r.status.ExitStatus() != exitUsage {
		t.Errorf("check of a FIFO that nobody writes: %+v", r)
	}
	if r := run(t, nil, "config", "show", wrong); r.status.ExitStatus() != exitUsage ||
		!strings.HasPrefix(r.stderr, "warning: "+wrong+":6:") {
		t.Errorf("show of a bad file: %+v", r)
	}
	r = run(t, nil, "config", "show", bad)
	if r.status.ExitStatus() != 0 || !strings.Contains(r.stderr, "warning: "+bad+":2: ") ||
		!strings.HasSuffix(r.stderr, "; it is ignored\n") {
		t.Errorf("show with an unknown property: %+v", r)
	}
}

func TestConfigShowGolden(t *testing.T) {
	env := []string{"URDMA_SOCKET=/run/test/urdmad.sock"}
	golden(t, "testdata/show-default.txt", run(t, env, "config", "show").stdout)
	golden(t, "testdata/show-file.txt", run(t, env, "config", "show", "../config/testdata/good/c-urdma.json").stdout)
	golden(t, "testdata/show-file.json",
		run(t, env, "config", "show", "--json", "../config/testdata/good/c-urdma.json").stdout)
}

// TestConfigInit: what it prints for this machine is correct.
func TestConfigInit(t *testing.T) {
	r := run(t, nil, "config", "init")
	if err := config.CheckBytes("config init", []byte(r.stdout)); err != nil || r.status.ExitStatus() != 0 {
		t.Errorf("%v: %+v", err, r)
	}
}

// testMachine builds a /sys with NICs under several drivers.
func testMachine(t *testing.T) machine {
	t.Helper()
	sys := t.TempDir()
	for _, n := range []struct{ pci, class, driver, netdev string }{
		{"0000:00:02.0", "0x030000", "i915", ""}, // graphics
		{"0000:03:00.0", "0x020000", "vfio-pci", ""},
		{"0000:03:00.1", "0x020000", "", ""},
		{"0000:04:00.0", "0x020000", "mlx5_core", "ens4"},
		{"0000:05:00.0", "0x020000", "e1000e", "eth0"},
	} {
		dir := filepath.Join(sys, "bus/pci/devices", n.pci)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "class"), n.class+"\n", 0o644)
		if n.driver != "" {
			if err := os.Symlink("../../../drivers/"+n.driver, filepath.Join(dir, "driver")); err != nil {
				t.Fatal(err)
			}
		}
		if n.netdev != "" {
			for _, d := range []string{filepath.Join(dir, "net", n.netdev), filepath.Join(sys, "class/net", n.netdev)} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return machine{sys: sys, address: func(name string) netip.Prefix {
		if name == "ens4" {
			return netip.MustParsePrefix("192.168.4.7/22")
		}
		return netip.Prefix{}
	}, mtu: func(name string) int {
		return map[string]int{"eth0": 1400, "ens4": 1500, "lo": 65536, "slip": 296}[name]
	}}
}

func TestStartingFile(t *testing.T) {
	m := testMachine(t)
	text, err := m.startingFile([]string{"eth0"})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	golden(t, "testdata/init.json", string(text))
	none := machine{sys: t.TempDir(), address: m.address}
	text, err = none.startingFile(nil)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/init-loopback.json", string(text))
	for _, name := range []string{"lo", "slip"} {
		if err := os.Mkdir(filepath.Join(m.sys, "class/net", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if text, err = m.startingFile([]string{"lo"}); err != nil || !strings.Contains(string(text), `"mtu": 9600`) {
		t.Errorf("an interface of a giant MTU: %v\n%s", err, text)
	}
	for name, says := range map[string]string{"slip": "its MTU is 296, urdmad needs at least 576",
		"eth9": "no such network interface", "a,b": "no name", "../x": "no name", "": "no name"} {
		if _, err := m.startingFile([]string{name}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("--interface %q: %v", name, err)
		}
	}
	if _, err := m.startingFile([]string{"ens4"}); err == nil ||
		!strings.Contains(err.Error(), "a different address for each port") {
		t.Errorf("one interface twice: %v", err)
	}
}
