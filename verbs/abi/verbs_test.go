package abi

import (
	"debug/dwarf"
	"go/constant"
	"go/types"
	"strings"
	"testing"
)

// prefixes are this package's prefixes for the names of rdma-core's enumerations. The longest matching one is
// used.
var prefixes = map[string]string{
	"Access": "IBV_ACCESS_", "CM": "RDMA_CM_EVENT_", "Event": "IBV_EVENT_", "Flow": "IBV_FLOW_ATTR_", "GIDType": "IBV_GID_TYPE_",
	"LinkLayer": "IBV_LINK_LAYER_", "MWType": "IBV_MW_TYPE_", "Node": "IBV_NODE_", "PS": "RDMA_PS_", "QPMask": "IBV_QP_",
	"SRQMask": "IBV_SRQ_", "SRQType": "IBV_SRQT_", "QPS": "IBV_QPS_",
	"QPType": "IBV_QPT_", "Send": "IBV_SEND_", "Status": "IBV_WC_", "TransportType": "IBV_TRANSPORT_", "WC": "IBV_WC_",
	"WR": "IBV_WR_",
}

// inC returns the folded rdma-core name of a constant in verbs.go.
func inC(name string) string {
	best := ""
	for p := range prefixes {
		if strings.HasPrefix(name, p) && len(p) > len(best) {
			best = p
		}
	}
	return folded(prefixes[best] + strings.TrimPrefix(name, best))
}

// TestLibibverbsValues: verbs.go has the numbers that rdma-core has under the same names.
func TestLibibverbsValues(t *testing.T) {
	known := map[string]int64{}
	for _, e := range entries(t, "#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n", dwarf.TagEnumerator) {
		name, _ := e.Val(dwarf.AttrName).(string)
		known[folded(name)], _ = e.Val(dwarf.AttrConstValue).(int64)
	}
	scope := scopeOf(t, "verbs.go")
	for _, name := range scope.Names() {
		value, _ := constant.Int64Val(scope.Lookup(name).(*types.Const).Val())
		if c, ok := known[inC(name)]; !ok || c != value {
			t.Errorf("constant %s is %d, in rdma-core %d (%v)", name, value, c, ok)
		}
	}
	if n := len(scope.Names()); n < 80 {
		t.Errorf("only %d constants were found", n)
	}
}
