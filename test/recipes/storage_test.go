package recipes

import (
	"encoding/json"
	"testing"

	"urdma/test/lab"
)

// storage has the sections of docs/recipes-storage.md.
var storage = map[string]recipe{
	"Ceph":   {[]string{"ceph-mon", "ceph-osd", "rados"}, []string{"3300"}, []string{"Total reads made"}},
	"Valkey": {[]string{"$URDMA_RECIPES/rdma-test"}, []string{"valkey-server"}, []string{"Valkey Over RDMA test [OK]"}},
	"SPDK":   {[]string{"$URDMA_RECIPES/bdevperf"}, []string{"nvmf_tgt"}, []string{"remoten1"}},
	"QEMU": {[]string{"qemu-system-x86_64"}, []string{"qemu-system"},
		[]string{"Migration status: completed"}},
}

// moves is the least number of bytes that urdmad must have moved for a section: otherwise the program used sockets.
var moves = map[string]uint64{"Ceph": 16 << 20, "Valkey": 1 << 20, "SPDK": 1 << 20, "QEMU": 1 << 20}

// TestStorageRecipes: each block of the page works as written.
func TestStorageRecipes(t *testing.T) {
	cook(t, "../../docs/recipes-storage.md", storage)
}

// received is the number of bytes in messages that the programs of an urdmad have received.
func received(t *testing.T, n *lab.Node) uint64 {
	t.Helper()
	out, err := n.Urdma("status", "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var status struct {
		Totals struct {
			Work struct {
				Received uint64 `json:"bytes_received"`
			} `json:"work"`
		} `json:"totals"`
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		t.Fatal(err)
	}
	return status.Totals.Work.Received
}
