package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/schema"
	"urdma/verbs/personality"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with the golden file next to the input.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant (%s):\n%s", got, file, want)
	}
}

// inFolder changes the directory, so that messages contain only the file name.
func inFolder(t *testing.T, dir string) []string {
	t.Helper()
	t.Chdir(dir)
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, error %v", dir, len(files), err)
	}
	return files
}

// fixedPlaces keeps the machine's own environment out of golden files.
func fixedPlaces(t *testing.T) {
	t.Setenv("URDMA_SOCKET", "/run/test/urdmad.sock")
}

func TestBadFiles(t *testing.T) {
	for _, file := range inFolder(t, "testdata/bad") {
		_, err := LoadStrict(file)
		if err == nil {
			t.Errorf("%s: accepted", file)
			continue
		}
		golden(t, strings.TrimSuffix(file, ".json")+".error", err.Error()+"\n")
		holdForm(t, file, err)
	}
}

// holdForm checks that each error has all required parts.
func holdForm(t *testing.T, file string, err error) {
	t.Helper()
	var list Errors
	if one := (*Error)(nil); !errors.As(err, &list) && errors.As(err, &one) {
		list = Errors{one}
	}
	if len(list) == 0 {
		t.Errorf("%s: %T, expected Errors or *Error", file, err)
	}
	for _, e := range list {
		if e.File != file || e.Line < 1 || e.Found == "" || e.Allowed == "" && e.Hint == "" {
			t.Errorf("%s: an incomplete error %+v", file, *e)
		}
	}
	for _, c := range err.Error() {
		if c < ' ' && c != '\n' {
			t.Errorf("%s: control character %q in the error", file, c)
		}
	}
}

func TestGoodFiles(t *testing.T) {
	fixedPlaces(t)
	for _, file := range inFolder(t, "testdata/good") {
		if _, err := LoadStrict(file); err != nil {
			t.Errorf("%v", err)
			continue
		}
		c, err := Load(file, func(w string) { t.Errorf("%s: warned: %s", file, w) })
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, s := range c.Settings {
			b.WriteString(s.Path + " = " + s.Value + " (" + s.Origin + ")\n")
		}
		b.WriteString("EAL: " + strings.Join(c.EALArgs, " ") + "\n")
		golden(t, strings.TrimSuffix(file, ".json")+".settings", b.String())
		holdRoundTrip(t, c)
	}
}

// holdRoundTrip checks that the effective configuration, written to a file, loads as the same configuration.
func holdRoundTrip(t *testing.T, c *Config) {
	t.Helper()
	again, err := parse("again.json", c.JSON(), refuseUnknown)
	if err != nil {
		t.Fatalf("%s: the effective configuration is refused: %v\n%s", c.Source, err, c.JSON())
	}
	if !reflect.DeepEqual(c.Ports, again.Ports) || !slices.Equal(c.EALArgs, again.EALArgs) ||
		c.Limits != again.Limits || c.Polling != again.Polling || c.Socket != again.Socket ||
		c.SysfsDir != again.SysfsDir || !slices.Equal(c.Workers, again.Workers) {
		t.Errorf("%s: read again:\n%+v\nwas:\n%+v", c.Source, again, c)
	}
}

// The file in the README of the C urdma must keep its meaning.
func TestFileOfTheCUrdma(t *testing.T) {
	c, err := Load("testdata/good/c-urdma.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Ports[0]
	if len(c.Ports) != 1 || p.Address.String() != "10.2.0.100/24" || p.Vdev != "" || p.PCIAddress != "" ||
		p.Name != "urdma0" {
		t.Errorf("ports: %+v", c.Ports)
	}
	if c.Socket != "/run/urdma.sock" || c.SysfsDir != "/run/urdma.sysfs" {
		t.Errorf("socket %s, sysfs %s", c.Socket, c.SysfsDir)
	}
	if !slices.Equal(c.EALArgs, []string{"--log-level=7"}) {
		t.Errorf("EAL arguments %q", c.EALArgs)
	}
	if c.StatsInterval != 5*time.Second || c.DeathTimeout != 4*time.Second {
		t.Errorf("intervals %v, %v", c.StatsInterval, c.DeathTimeout)
	}
}

func TestEveryFieldIsRead(t *testing.T) {
	c, err := Load("testdata/good/everything.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Ports[0]
	if p.Name != "rnic0" || p.PCIAddress != "0000:3b:00.1" || p.Address.String() != "10.2.0.100/16" ||
		p.Gateway.String() != "10.2.255.254" || p.MTU != 9000 || p.MAC != "02:00:0a:02:00:64" || p.MaxQP != 100 ||
		p.RxDesc != 2048 || p.TxDesc != 0 || p.RxBurst != 64 || p.TxBurst != 16 ||
		p.Transport != personality.RoCE || p.Placement != PlacementImmediate {
		t.Errorf("port 0: %+v", p)
	}
	if q := c.Ports[1]; q.Transport != personality.IB || q.Placement != PlacementOrdered || q.MTU != defaultWithinMTU ||
		q.Gateway.IsValid() {
		t.Errorf("port 1 does not follow the top level: %+v", q)
	}
	if want := (Polling{0, 100 * time.Microsecond, 500 * time.Microsecond, -5}); c.Polling != want {
		t.Errorf("polling %+v", c.Polling)
	}
	if want := (Limits{10, 20, 30, 40, 31, 41, 42, 43, 44, 45, 46, 1 << 47, 1 << 16, 5, 47}); c.Limits != want {
		t.Errorf("limits %+v", c.Limits)
	}
	if !slices.Equal(c.Workers, []Worker{{2}}) {
		t.Errorf("workers %+v", c.Workers)
	}
	if c.SocketGroup != "rdma" || c.SysfsDir != "/run/urdma/sys" || c.StatsInterval != 0 ||
		c.DeathTimeout != time.Second ||
		c.Responder != ResponderOff || len(c.ResponderAllow) != 3 || c.ResponderAllow[2].String() != "fd00::/64" ||
		c.ResponderAllow[1].String() != "192.168.7.12/32" ||
		c.MetricsAddress != "[::1]:9478" || c.LogLevel != "debug" || c.LogFormat != "json" {
		t.Errorf("top level: %+v", c)
	}
	if !slices.Equal(c.EALArgs, []string{"--file-prefix=urdma-a"}) {
		t.Errorf("EAL arguments %q", c.EALArgs)
	}
}

func TestEALArguments(t *testing.T) {
	c, err := Load("testdata/good/c-urdma-full.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-l", "0-3", "-n", "4", "--log-level=7", "--no-huge", "-m", "150",
		"-d", "librte_net_i40e.so", "-d", "librte_mempool_ring.so", "--vdev=net_ring0", "--vdev=net_tap0,iface=t0"}
	if !slices.Equal(c.EALArgs, want) {
		t.Errorf("got %q\nwant %q", c.EALArgs, want)
	}
	if c.Ports[0].MaxQP != 4096 || c.Ports[0].TxDesc != 512 || c.Ports[1].PCIAddress != "0000:05:00.1" {
		t.Errorf("ports %+v", c.Ports)
	}
}

func TestDefault(t *testing.T) {
	fixedPlaces(t)
	c := Default()
	if len(c.Ports) != 1 || c.Ports[0].Vdev != "loopback" || c.Ports[0].Address.String() != "198.18.0.1/24" ||
		c.Ports[0].Transport != personality.IB || c.Ports[0].Placement != PlacementOrdered {
		t.Errorf("ports %+v", c.Ports)
	}
	if c.Source != defaultSource || c.Socket != "/run/test/urdmad.sock" || c.SysfsDir != "/run/test/urdmad.sysfs" {
		t.Errorf("%+v", c)
	}
	holdRoundTrip(t, c)
}

func TestLoadWarnsOfUnknownProperties(t *testing.T) {
	t.Chdir("testdata/bad")
	var warned []string
	c, err := Load("unknown-typo.json", func(w string) { warned = append(warned, w) })
	if err != nil {
		t.Fatal(err)
	}
	want := `unknown-typo.json:2: stats_timer_intervall: found an unknown property; did you mean ` +
		`"stats_timer_interval"?; it is ignored`
	if len(warned) != 1 || warned[0] != want {
		t.Errorf("warned %q, want %q", warned, want)
	}
	if c.StatsInterval != 5*time.Second {
		t.Errorf("the unknown property had an effect: %v", c.StatsInterval)
	}
	if _, err := Load("unknown-typo.json", nil); err != nil {
		t.Errorf("without a warn function: %v", err)
	}
	// A misspelt required property is an error, and gives a warning, too.
	warned = nil
	if _, err := Load("unknown-typo-required.json", func(w string) { warned = append(warned, w) }); err == nil ||
		len(warned) != 1 {
		t.Errorf("error %v, warnings %q", err, warned)
	}
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "absent.json"), nil)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("absent: %v", err)
	}
	_, err = Load(dir, nil)
	if err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	big := filepath.Join(dir, "big.json")
	if err := os.WriteFile(big, make([]byte, maxBytes+5), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadStrict(big); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("too big: %v", err)
	}
}

// TestFittingTransport: the transport shown for a port for which the file sets none.
func TestFittingTransport(t *testing.T) {
	for _, c := range []struct{ top, port, want string }{
		{"", `"vdev": "loopback", "ipv4_address": "10.0.0.1"`, personality.IB},
		{"", `"vdev": "loopback", "ipv4_address": "10.0.192.1"`, personality.RoCE}, // no LID
		{"", `"vdev": "memif,role=server,socket=/tmp/s", "ipv6_address": "fd00::1"`, personality.IB},
		{"", `"vdev": "memif,role=server,socket=/tmp/s", "ipv4_address": "10.0.0.1", "gateway": "10.0.0.2"`,
			personality.RoCE},
		{"", `"vdev": "udp", "ipv4_address": "0.0.0.0"`, personality.RoCE},
		{"", `"vdev": "udp", "ipv4_address": "10.0.0.1"`, personality.RoCE},
		{"", `"vdev": "tcp", "ipv4_address": "10.0.0.1"`, personality.IWARP},
		{"", `"vdev": "net_tap0", "ipv4_address": "10.0.0.1"`, personality.RoCE},
		{"", `"vdev": "udp", "ipv4_address": "10.0.0.1", "protocol": "rocev2"`, personality.RoCE},
		{`"transport": "iwarp", `, `"vdev": "loopback", "ipv4_address": "10.0.0.1"`, personality.IWARP},
		{`"transport": "iwarp", `, `"vdev": "loopback", "ipv4_address": "10.0.0.1", "transport": "roce"`, personality.RoCE},
		{`"transport": "iwarp", `, `"vdev": "udp", "ipv4_address": "10.0.0.1", "protocol": "rocev2"`, personality.RoCE},
		{`"profile": "cx6", `, `"vdev": "loopback", "ipv4_address": "10.0.0.1"`, personality.RoCE},
		{`"profile": "t6", `, `"vdev": "loopback", "ipv4_address": "10.0.0.1", "transport": "iwarp"`, personality.IWARP},
	} {
		file := filepath.Join(t.TempDir(), "urdma.json")
		if err := os.WriteFile(file, []byte(`{ `+c.top+`"ports": [ { `+c.port+` } ] }`), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := LoadStrict(file)
		if err != nil {
			t.Error(err)
		} else if got.Ports[0].Transport != c.want {
			t.Errorf("%s%s: %s, expected %s", c.top, c.port, got.Ports[0].Transport, c.want)
		}
	}
}

// TestProfileTransport: a port can't be shown as another transport than the profile's.
func TestProfileTransport(t *testing.T) {
	for _, c := range []struct{ text, at string }{
		{`"transport": "ib", "ports": [ { "vdev": "loopback", "ipv4_address": "10.0.0.1" } ]`, "transport"},
		{`"ports": [ { "vdev": "loopback", "ipv4_address": "10.0.0.1", "transport": "ib" } ]`, "ports[0].transport"},
	} {
		err := CheckBytes("urdma.json", []byte(`{ "profile": "cx6", `+c.text+` }`))
		if err == nil || !strings.Contains(err.Error(), c.at) || !strings.Contains(err.Error(), `the profile "cx6"`) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// TestTransports: the schema accepts exactly the existing personalities and profiles.
func TestTransports(t *testing.T) {
	names := append([]string{""}, personality.ProfileNames()...)
	if p, ok := schema.Lookup("profile"); !ok || !slices.Equal(p.Enum, names) {
		t.Errorf("profile takes %v, expected %v", p.Enum, names)
	}
	for _, path := range []string{"transport", "ports[].transport"} {
		p, ok := schema.Lookup(path)
		if !ok || !slices.Equal(p.Enum, personality.Names()) {
			t.Errorf("%s takes %v, expected %v", path, p.Enum, personality.Names())
		}
	}
}
