package test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/inject"
	"urdma/inspect"
	"urdma/verbs/abi"
)

func faultsProgram(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "faults")
	if out, err := exec.Command("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o", binary,
		"testdata/faults/main.c", "-lrdmacm", "-libverbs", "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return binary
}

func injected(text string) []string { return []string{"URDMA_INJECT=" + text} }

// TestEveryStatus: a send and a receive end with each status of enum ibv_wc_status but
// success, and what was posted behind them is flushed.
func TestEveryStatus(t *testing.T) {
	r, binary := startReal(t), faultsProgram(t)
	for from := 1; from < len(inject.Statuses); from += 8 {
		var rules []string
		argv := []string{binary, "statuses"}
		for i, status := range inject.Statuses[from:min(from+8, len(inject.Statuses))] {
			rules = append(rules, fmt.Sprintf("send opcode=RDMA_WRITE status=%s nth=%d", status, i+1), fmt.Sprintf("receive status=%s nth=%d", status, i+1))
			argv = append(argv, strconv.Itoa(from+i))
		}
		if said := r.run(t, injected(strings.Join(rules, "\n")), argv...); !strings.Contains(said, "done") {
			t.Errorf("%q", said)
		}
	}
}

// TestResponders: what the requester's send ends with for each answer.
func TestResponders(t *testing.T) {
	r, binary := startReal(t), faultsProgram(t)
	for answer, statuses := range map[string]map[int]int{
		"access":    {abi.WRRDMAWrite: abi.StatusRemAccessErr, abi.WRRDMARead: abi.StatusRemAccessErr, abi.WRAtomicFetchAndAdd: abi.StatusRemAccessErr},
		"operation": {abi.WRRDMAWrite: abi.StatusRemOpErr, abi.WRRDMARead: abi.StatusRemOpErr, abi.WRAtomicFetchAndAdd: abi.StatusRemOpErr, abi.WRSend: abi.StatusRemOpErr},
		"invalid":   {abi.WRAtomicFetchAndAdd: abi.StatusRemInvReqErr, abi.WRSend: abi.StatusRemInvReqErr},
		"rnr":       {abi.WRSend: abi.StatusRNRRetryExcErr},
	} {
		for opcode, status := range statuses {
			r.run(t, injected("respond answer="+answer+" count=all"), binary, "respond", strconv.Itoa(opcode), strconv.Itoa(status))
		}
	}
	// A message that waits for a while arrives all the same.
	r.run(t, injected("respond answer=rnr count=1"), binary, "respond", strconv.Itoa(abi.WRSend), "0")
}

// TestEveryCall: each function fails with the errno that is asked for.
func TestEveryCall(t *testing.T) {
	r, binary := startReal(t), faultsProgram(t)
	const errno = "EL2NSYNC" // that nothing else answers
	managed := map[string]string{}
	for _, f := range []string{"rdma_create_event_channel", "rdma_create_id", "rdma_bind_addr", "rdma_resolve_addr", "rdma_resolve_route", "rdma_listen",
		"rdma_connect", "rdma_accept", "rdma_reject", "rdma_disconnect", "rdma_set_option", "rdma_migrate_id"} {
		managed[f] = f
	}
	calls := map[string]string{"ibv_post_send": "post_send_one", "ibv_post_recv": "post_recv_one", "ibv_post_srq_recv": "post_recv_one"}
	for _, f := range []string{"ibv_open_device", "ibv_alloc_pd", "ibv_reg_mr", "ibv_dereg_mr", "ibv_create_comp_channel", "ibv_create_cq", "ibv_resize_cq",
		"ibv_create_qp", "ibv_modify_qp", "ibv_query_qp", "ibv_create_srq", "ibv_modify_srq", "ibv_query_srq", "ibv_alloc_mw", "ibv_dealloc_mw",
		"ibv_attach_mcast", "ibv_detach_mcast", "ibv_open_xrcd", "ibv_open_qp", "ibv_close_xrcd", "ibv_destroy_qp", "ibv_destroy_srq", "ibv_destroy_cq",
		"ibv_destroy_comp_channel", "ibv_dealloc_pd", "ibv_close_device"} {
		calls[f] = f
	}
	for mode, functions := range map[string]map[string]string{"calls": calls, "managed": managed} {
		for f, says := range functions {
			said := r.run(t, injected("call "+f+" errno="+errno), binary, mode)
			if !strings.HasPrefix(said, says+"(") || !strings.HasSuffix(strings.TrimSpace(said), " "+errno) {
				t.Errorf("%s: the program says %q, expected %s with %s", f, said, says, errno)
			}
		}
		if said := r.run(t, nil, binary, mode); !strings.Contains(said, "nothing failed") {
			t.Errorf("%s without a fault: %q", mode, said)
		}
	}
}

// TestLate: events come late, requests are refused, and all goes on.
func TestLate(t *testing.T) {
	r, binary := startReal(t), faultsProgram(t)
	if said := r.run(t, injected("cm reject"), binary, "managed"); !strings.Contains(said, "RDMA_CM_EVENT_REJECTED") {
		t.Errorf("a connection request that is rejected: %q", said)
	}
	if said := r.run(t, injected("cm delay=20ms count=all; call delay=2ms count=all"), binary, "managed"); !strings.Contains(said, "nothing failed") {
		t.Errorf("late events and calls: %q", said)
	}
	const delay = 50
	said := r.run(t, injected(fmt.Sprintf("event delay=%dms", delay)), binary, "notified")
	if ms, err := strconv.Atoi(strings.TrimSpace(said)); err != nil || ms < delay {
		t.Errorf("a completion event that is delayed by %d ms came after %q ms", delay, said)
	}
}

// TestWrongInject: a program with rules that mean nothing does not run as if there were none.
func TestWrongInject(t *testing.T) {
	r, binary := startReal(t), faultsProgram(t)
	c := exec.Command(binary, "calls")
	c.Env = append(os.Environ(), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+r.socket, "URDMA_INJECT=send status=NOPE")
	if out, err := c.CombinedOutput(); err == nil && !strings.HasPrefix(string(out), "urdma: URDMA_INJECT") || !strings.Contains(string(out), "refuses") {
		t.Errorf("%v, %q", err, out)
	}
}

// TestEveryEvent: each asynchronous event of enum ibv_event_type but IBV_EVENT_WQ_FATAL,
// whose queues urdmad has not, reaches a program that runs.
func TestEveryEvent(t *testing.T) {
	r, binary := startReal(t), faultsProgram(t)
	c := exec.Command(binary, "events")
	c.Env = append(os.Environ(), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+r.socket)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(3*time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() { guard.Stop(); _ = c.Process.Kill(); _ = c.Wait() })
	source, err := inspect.Open(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	snapshot, err := source.Fetch()
	if err != nil {
		t.Fatal(err)
	}
	port := snapshot.Ports[0].Name
	lines := bufio.NewScanner(out)
	for event, name := range inject.Events[:len(inject.Events)-1] {
		var qpn, cq, srq uint32
		for n := 0; n != 3; n, _ = fmt.Sscanf(lines.Text(), "%x %d %d", &qpn, &cq, &srq) {
			if !lines.Scan() {
				t.Fatal(lines.Err())
			}
		}
		object, about := fmt.Sprintf("port %s %s", port, name), uint32(1)
		switch {
		case name == "CQ_ERR":
			object, about = fmt.Sprintf("cq %d %s", cq, name), cq
		case name == "DEVICE_FATAL":
			object, about = "device "+port, 0
		case strings.HasPrefix(name, "SRQ_"):
			object, about = fmt.Sprintf("srq %d %s", srq, name), srq
		case strings.HasPrefix(name, "QP_"), strings.HasPrefix(name, "SQ_"), strings.HasPrefix(name, "PATH_"), name == "COMM_EST":
			object, about = fmt.Sprintf("qp %x %s", qpn, name), qpn
		}
		if _, err := source.Inject(object); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		// Other lines are of what it takes along: queue pairs of a queue in error.
		for want := fmt.Sprintf("event %d %x", event, about); lines.Text() != want; {
			if !lines.Scan() {
				t.Fatalf("%s: no event: %v", object, lines.Err())
			}
		}
	}
}
