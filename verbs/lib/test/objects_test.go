package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/programtest"
)

// TestObjects runs a program on a real urdmad that uses objects and attributes in all ways, with queue pairs
// connected by number: each case on its own urdmad, and all on one, to find effects of one case on the next.
func TestObjects(t *testing.T) {
	t.Setenv("URDMA_TRANSPORT", "iwarp") // its queue pairs address each other by GID
	sources, _ := filepath.Glob("testdata/objects/*.c")
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "objects"),
		append(sources, "-libverbs", "-lpthread", "-ldl")...)
	names, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	wantHugePages(t)
	r := startReal(t)
	for _, name := range strings.Fields(string(names)) {
		if name != "limits" && !(name == "mark" && lab.Core()) { // marks are shown by what is attached
			t.Run(name, func(t *testing.T) {
				if out := r.run(t, nil, binary, name); strings.Contains(out, "SKIPPED") {
					t.Log(out)
				}
			})
		}
	}
	t.Run("limits", func(t *testing.T) { // with less memory than the machine has
		config := filepath.Join(t.TempDir(), "urdma.json")
		if err := os.WriteFile(config, []byte(`{"ports": [{"vdev": "loopback", "ipv4_address": "198.18.0.1/24"}], `+
			`"limits": {"registered_bytes": 1073741824}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		startReal(t, "--config", config).run(t, nil, binary, "limits")
	})
	for _, name := range []string{"modify", "datagram_header"} {
		t.Run(name+"/roce", func(t *testing.T) { r.run(t, []string{"URDMA_TRANSPORT=roce"}, binary, name) })
	}
	if lab.Core() {
		return // the cases below are of what is attached to urdmad
	}
	t.Run("explain, asked to", func(t *testing.T) {
		_, said := r.outputs(t, []string{"URDMA_EXPLAIN=1"}, binary, "explain")
		explains(t, said)
	})
	t.Run("again/strict", func(t *testing.T) {
		r.run(t, []string{"URDMA_STRICT=inline,max_sge:3,max_qp_wr:100,max_inline_data:100,max_cqe:1000," +
			"max_srq_wr:100,max_srq_sge:3"}, binary, "again")
	})
}

// explains checks that each mistake of explain.c was explained once on standard error.
func explains(t *testing.T, out string) {
	t.Helper()
	for _, want := range []string{"0x0102", "it has no IBV_ACCESS_REMOTE_WRITE; region ",
		"change: the peer registers with", "IBV_EVENT_QP_ACCESS_ERR", "0x0401",
		"64 bytes at ", "with lkey 0x7; no region or window has the key 0x7", "0x0616",
		"ibv_modify_qp: qp: no such queue pair state transition: from RESET to RTS",
		"ibv_create_qp: cap.max_send_wr is 1073741824, allowed: 0 to ", "ibv_create_cq: cqe is 1073741824, allowed: 1 to ",
		"which need IBV_ACCESS_LOCAL_WRITE",
		"EFAULT: ibv_reg_mr: addr is (nil), length 64: not all of it is mapped and readable, and writable, as access wants",
		"length 18446744073709551615 goes beyond",
		"ibv_modify_qp: qp: wrong attribute: max_dest_rd_atomic is 200, allowed: 0 to "} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, ": 0x0504, a completion queue was full"); n != 2 {
		t.Errorf("of two completion queues %d overran by what is said:\n%s", n, out)
	}
	if n := strings.Count(out, ": 0x0102, "); n != 1 {
		t.Errorf("0x0102 was explained %d times, expected once:\n%s", n, out)
	}
}

// wantHugePages reserves some for the test, as root.
func wantHugePages(t *testing.T) {
	const file, want = "/proc/sys/vm/nr_hugepages", 8
	text, err := os.ReadFile(file)
	if n, _ := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || n >= want {
		return
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(want)), 0o644); err != nil {
		t.Logf("no huge pages: %v", err)
		return
	}
	t.Cleanup(func() { _ = os.WriteFile(file, text, 0o644) })
}
