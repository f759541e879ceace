package wire

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestPacketErrors: none of errors.go is missing in the list.
func TestPacketErrors(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\tErr\w+ += errors\.New\("((?:ethernet|ipv4|udp|arp|icmp|encapsulation|trp|datagram|uc): .*)"\)$`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 20 {
		t.Fatalf("%d errors found in the source", len(found))
	}
	for _, m := range found {
		if !slices.ContainsFunc(PacketErrors, func(e error) bool { return e.Error() == m[1] }) {
			t.Errorf("PacketErrors lacks %q", m[1])
		}
	}
}

// TestNamedTermCodes: TRP has those of RDMAP and DDP.
func TestNamedTermCodes(t *testing.T) {
	if !slices.Contains(TermCodes, TermUntaggedNoBuffer) || !slices.Contains(TermCodes, TermOperationUnspecified) || slices.Contains(TermCodes, TermMPALost) {
		t.Errorf("%v", TermCodes)
	}
}
