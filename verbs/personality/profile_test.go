package personality

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"urdma/verbs/abi"
)

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

func TestProfiles(t *testing.T) {
	var d abi.Device
	seen := map[string]bool{}
	for i, name := range ProfileNames() {
		p := ProfileNamed(name)
		if p == nil || p != &Profiles()[i] || seen[name] || len(name) >= len(d.Profile) || Named(p.Transport) == nil {
			t.Fatalf("%q: %+v", name, p)
		}
		seen[name] = true
		d = abi.Device{}
		p.Describe(12, "urdma12", "1.2.3", &d)
		if got := text(d.Name[:]); got != fmt.Sprintf(p.Device, 12) || !strings.HasSuffix(got, "12") {
			t.Errorf("%s: device 12 is %q", name, got)
		}
		if text(d.Profile[:]) != name || text(d.FwVer[:]) != p.Firmware || d.VendorID != p.VendorID || p.VendorID == 0 {
			t.Errorf("%s: %+v", name, d)
		}
		if g := p.PCI.Generation; g == 0 || p.PCI.Lanes == 0 || p.PCI.Driver == "" {
			t.Errorf("%s: %+v", name, p.PCI)
		}
	}
	if ProfileNamed("") != &Own || ProfileNamed("cx") != nil {
		t.Error("a name that is none has a profile")
	}
}

func TestOwnProfile(t *testing.T) {
	var d abi.Device
	Own.Describe(1, "hca0", "1.2.3", &d)
	if text(d.Name[:]) != "hca0" || text(d.FwVer[:]) != "1.2.3" || text(d.Profile[:]) != "" || d.VendorID != 0x757264 {
		t.Errorf("%+v", d)
	}
}

func TestPCIAddress(t *testing.T) {
	for n, want := range map[int]string{0: "7572:01:00.4", 254: "7572:ff:00.4", 255: "7572:01:01.4"} {
		bus, got := ProfileNamed("t6").PCIAddress(n)
		if got != want || !strings.HasPrefix(got, bus+":") {
			t.Errorf("device %d: %s on %s, expected %s", n, got, bus, want)
		}
	}
}

// TestPCIDomain: liburdma.so has the same domain.
func TestPCIDomain(t *testing.T) {
	source, err := os.ReadFile("../lib/interpose/paths.c")
	if err != nil || strings.Count(string(source), fmt.Sprintf("%04x:", PCIDomain)) != 3 {
		t.Errorf("paths.c has other paths than those of domain %04x (%v)", PCIDomain, err)
	}
}
