package abi

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// prefixes are what this package writes in front of the names of rdma-core's
// enumerations. The longest that fits counts.
var prefixes = map[string]string{
	"Access": "IBV_ACCESS_", "CM": "RDMA_CM_EVENT_", "Event": "IBV_EVENT_", "GIDType": "IBV_GID_TYPE_",
	"LinkLayer": "IBV_LINK_LAYER_", "MWType": "IBV_MW_TYPE_", "Node": "IBV_NODE_", "PS": "RDMA_PS_", "QPMask": "IBV_QP_", "SRQMask": "IBV_SRQ_", "SRQType": "IBV_SRQT_", "QPS": "IBV_QPS_",
	"QPType": "IBV_QPT_", "Send": "IBV_SEND_", "Status": "IBV_WC_", "TransportType": "IBV_TRANSPORT_", "WC": "IBV_WC_", "WR": "IBV_WR_",
}

// inC is the folded name in rdma-core of a constant in verbs.go.
func inC(name string) string {
	best := ""
	for p := range prefixes {
		if strings.HasPrefix(name, p) && len(p) > len(best) {
			best = p
		}
	}
	return folded(prefixes[best] + strings.TrimPrefix(name, best))
}

// TestLibibverbsValues: verbs.go has rdma-core's numbers, under rdma-core's names.
func TestLibibverbsValues(t *testing.T) {
	const include = "#include <stdio.h>\n#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n"
	cpp := exec.Command("gcc", "-E", "-P", "-")
	cpp.Stdin = strings.NewReader(include)
	text, err := cpp.Output()
	if err != nil {
		t.Fatalf("rdma-core's headers (make deps): %v", err)
	}
	known := map[string]string{} // folded to C
	for _, e := range regexp.MustCompile(`enum \w* ?\{([^}]*)\}`).FindAllSubmatch(text, -1) {
		for _, name := range regexp.MustCompile(`\b(?:IBV|RDMA)_[A-Z0-9_]+`).FindAllString(string(e[1]), -1) {
			known[folded(name)] = name
		}
	}
	constants := readGo(t, "verbs.go").constants
	var names []string
	var src strings.Builder
	src.WriteString(include + "int main(void) {\n")
	for name := range constants {
		c, ok := known[inC(name)]
		if !ok {
			t.Errorf("constant %s has no namesake in rdma-core", name)
			continue
		}
		names = append(names, name)
		fmt.Fprintf(&src, "printf(\"%%lld\\n\", (long long)%s);\n", c)
	}
	if len(names) < 80 {
		t.Errorf("only %d constants were found", len(names))
	}
	for i, value := range runC(t, src.String()+"return 0; }\n") {
		if constants[names[i]] != value {
			t.Errorf("constant %s is %s, in rdma-core %s", names[i], constants[names[i]], value)
		}
	}
	if !slices.Contains(names, "WRSend") {
		t.Error("WRSend was not compared")
	}
}
