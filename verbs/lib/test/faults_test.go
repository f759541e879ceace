package test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/inject"
	"urdma/inspect"
	"urdma/test/programtest"
	"urdma/verbs/abi"
)

func faultsProgram(t *testing.T) string {
	t.Helper()
	return programtest.Compile(t, filepath.Join(t.TempDir(), "faults"), "testdata/faults/main.c", "-lrdmacm",
		"-libverbs", "-lpthread")
}

var update = flag.Bool("update", false, "write the tables of docs/errors.md")

// documented checks the table with this head in docs/errors.md.
func documented(t *testing.T, head string, rows []string) {
	t.Helper()
	const file = "../../../docs/errors.md"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), head)
	if !ok {
		t.Fatalf("%s has no table %q", file, head)
	}
	table, after := "", rest
	if strings.HasPrefix(rest, "| ") {
		table, after, _ = strings.Cut(rest, "\n\n")
		after = "\n" + after
	}
	switch wanted := strings.Join(rows, "\n"); {
	case *update && !t.Failed():
		if err := os.WriteFile(file, []byte(before+head+wanted+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case table != wanted:
		t.Errorf("%s has\n%s\nexpected (go test ./verbs/lib/test -run TestEvery -update)\n%s", file, table, wanted)
	}
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

func injected(text string) []string { return []string{"URDMA_INJECT=" + text} }

// TestEveryStatus: a send and a receive complete with each status of enum ibv_wc_status except success, and
// later work is flushed; and the status of the requester's send for each response of a responder.
func TestEveryStatus(t *testing.T) {
	r, binary := startWhole(t), faultsProgram(t)
	var texts []string
	for from := 1; from < len(inject.Statuses); from += 8 {
		var rules []string
		argv := []string{binary, "statuses"}
		for i, status := range inject.Statuses[from:min(from+8, len(inject.Statuses))] {
			rules = append(rules, fmt.Sprintf("send opcode=RDMA_WRITE status=%s nth=%d", status, i+1),
				fmt.Sprintf("receive status=%s nth=%d", status, i+1))
			argv = append(argv, strconv.Itoa(from+i))
		}
		texts = append(texts, lines(r.run(t, injected(strings.Join(rules, "\n")), argv...))...)
	}
	if len(texts) != len(inject.Statuses)-1 {
		t.Fatalf("%d of %d statuses: %q", len(texts), len(inject.Statuses)-1, texts)
	}
	answered := map[int][]string{}
	for _, c := range []struct {
		answer   string
		statuses map[uint32]int
	}{
		{"access", map[uint32]int{abi.WRRDMAWrite: abi.StatusRemAccessErr, abi.WRRDMARead: abi.StatusRemAccessErr,
			abi.WRAtomicFetchAndAdd: abi.StatusRemAccessErr}},
		{"operation", map[uint32]int{abi.WRRDMAWrite: abi.StatusRemOpErr, abi.WRRDMARead: abi.StatusRemOpErr,
			abi.WRAtomicFetchAndAdd: abi.StatusRemOpErr, abi.WRSend: abi.StatusRemOpErr}},
		{"invalid", map[uint32]int{abi.WRAtomicFetchAndAdd: abi.StatusRemInvReqErr, abi.WRSend: abi.StatusRemInvReqErr}},
		{"rnr", map[uint32]int{abi.WRSend: abi.StatusRNRRetryExcErr}},
	} {
		for opcode, status := range c.statuses {
			r.run(t, injected("respond answer="+c.answer+" count=all"), binary, "respond", fmt.Sprint(opcode),
				strconv.Itoa(status))
			if statement := "`respond answer=" + c.answer + "`"; !slices.Contains(answered[status], statement) {
				answered[status] = append(answered[status], statement)
			}
		}
	}
	// A message that waits for a while still arrives.
	r.run(t, injected("respond answer=rnr count=1"), binary, "respond", strconv.Itoa(abi.WRSend), "0")
	var rows []string
	for i, text := range texts {
		name := inject.Statuses[i+1]
		rows = append(rows, fmt.Sprintf("| %d | `IBV_WC_%s` | %s | `send status=%s`, `receive status=%s` | %s |", i+1, name,
			text, name, name, strings.Join(answered[i+1], ", ")))
	}
	documented(t, "| number | status | ibv_wc_status_str(3) | statements | at the peer |\n|---|---|---|---|---|\n", rows)
}

// TestEveryErrno: a call fails with each errno value of Linux.
func TestEveryErrno(t *testing.T) {
	r, binary := startWhole(t), faultsProgram(t)
	var values []string
	for e := syscall.Errno(1); e <= unix.EHWPOISON; e++ { // the last errno value
		if unix.ErrnoName(e) != "" { // skip numbers without a name
			values = append(values, strconv.Itoa(int(e)))
		}
	}
	for part := range slices.Chunk(values, 50) {
		var rules []string
		for i, value := range part {
			e, _ := strconv.Atoi(value)
			// the first call must succeed
			rules = append(rules, fmt.Sprintf("call ibv_alloc_pd errno=%s nth=%d", unix.ErrnoName(syscall.Errno(e)), i+2))
		}
		said := lines(r.run(t, injected(strings.Join(rules, "\n")), binary, "errnos", strconv.Itoa(len(part))))
		if !slices.Equal(said, part) {
			t.Errorf("the program was told %q, expected %q", said, part)
		}
	}
}

// unmistakable are the functions that inject knows and that can't return an error.
var unmistakable = []string{"rdma_destroy_event_channel", "rdma_destroy_id", "rdma_destroy_qp"}

// TestEveryCall: each function fails with the requested errno value.
func TestEveryCall(t *testing.T) {
	r, raw, binary := startWhole(t), startRaw(t), faultsProgram(t)
	const unusual = "EL2NSYNC" // a value that no function returns otherwise
	_, err := inject.Parse("call none errno=EIO")
	_, list, ok := strings.Cut(fmt.Sprint(err), "expected one of ")
	if !ok {
		t.Fatal(err)
	}
	own := map[string]string{"ibv_post_send": "post_send_one", "ibv_post_recv": "post_recv_one",
		"ibv_post_srq_recv": "post_recv_one"}
	var rows []string
	for f := range strings.SplitSeq(list, ", ") {
		if slices.Contains(unmistakable, f) {
			rows = append(rows, fmt.Sprintf("| `%s` | has no error to give |", f))
			continue
		}
		on, mode, says, errno := r, "calls", f, unusual
		if strings.HasPrefix(f, "rdma_") {
			mode = "managed"
		}
		if strings.HasSuffix(f, "_flow") {
			on, mode = raw, "flows"
		}
		if own[f] != "" {
			says = own[f]
		}
		if f == "ibv_query_device" { // earlier calls are made while devices are listed and opened
			errno, says = errno+" nth=3", "ibv_query_port"
		}
		said := strings.TrimSpace(on.run(t, injected("call "+f+" errno="+errno), binary, mode))
		how := said[strings.LastIndex(said, ": ")+1:]
		how, ok = strings.CutSuffix(strings.TrimSpace(how), " "+unusual)
		if !ok || !strings.HasPrefix(said, says+"(") {
			t.Errorf("%s: the program says %q, expected %s with %s", f, said, says, unusual)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s ERRNO |", f, how))
	}
	for mode, on := range map[string]*real{"calls": r, "managed": r, "flows": raw} {
		if said := on.run(t, nil, binary, mode); !strings.Contains(said, "nothing failed") {
			t.Errorf("%s without a fault: %q", mode, said)
		}
	}
	documented(t, "| NAME | what it answers |\n|---|---|\n", rows)
}

// TestLate: events come late and requests are refused, and the program still works.
func TestLate(t *testing.T) {
	r, binary := startWhole(t), faultsProgram(t)
	if said := r.run(t, injected("cm reject"), binary, "managed"); !strings.Contains(said, "RDMA_CM_EVENT_REJECTED") {
		t.Errorf("a connection request that is rejected: %q", said)
	}
	if said := r.run(t, injected("cm delay=20ms count=all; call delay=2ms count=all"), binary,
		"managed"); !strings.Contains(said, "nothing failed") {
		t.Errorf("late events and calls: %q", said)
	}
	const delay = 50
	said := r.run(t, injected(fmt.Sprintf("event delay=%dms", delay)), binary, "notified")
	if ms, err := strconv.Atoi(strings.TrimSpace(said)); err != nil || ms < delay {
		t.Errorf("a completion event that is delayed by %d ms came after %q ms", delay, said)
	}
}

// TestInjectedIsExplained: explanations say that the fault was injected.
func TestInjectedIsExplained(t *testing.T) {
	r, binary := startWhole(t), faultsProgram(t)
	for text, c := range map[string]struct {
		argv   []string
		number string
	}{
		"respond answer=access count=all":    {[]string{"respond", strconv.Itoa(abi.WRRDMAWrite), "10"}, "0x0102"},
		"respond answer=operation count=all": {[]string{"respond", strconv.Itoa(abi.WRSend), "11"}, "0x"},
		"call ibv_reg_mr errno=ENOMEM":       {[]string{"calls"}, "0x060c"},
		"cm reject":                          {[]string{"managed"}, "0x0585"},
	} {
		_, said := r.outputs(t, append(injected(text), "URDMA_EXPLAIN=1"), append([]string{binary}, c.argv...)...)
		if !strings.Contains(said, c.number) || !strings.Contains(said, "injected on purpose") {
			t.Errorf("%s: %q, expected %s and that it was injected", text, said, c.number)
		}
	}
}

// TestWrongInject: a program with invalid rules does not run as if there were none.
func TestWrongInject(t *testing.T) {
	r, binary := startWhole(t), faultsProgram(t)
	c := exec.Command(binary, "calls")
	c.Env = append(os.Environ(), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+r.Socket, "URDMA_INJECT=send status=NOPE")
	if out, err := c.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), `urdmad refuses to inject "send status=NOPE"`) ||
		strings.Contains(string(out), "URDMA_STRICT") {
		t.Errorf("%v, %q", err, out)
	}
}

// TestEveryEvent: each asynchronous event of enum ibv_event_type reaches a running program, except
// IBV_EVENT_WQ_FATAL, because urdmad has no work queues.
func TestEveryEvent(t *testing.T) {
	r, binary := startWhole(t), faultsProgram(t)
	c := exec.Command(binary, "events")
	c.Env = append(os.Environ(), "LD_PRELOAD="+preload(t), "URDMA_SOCKET="+r.Socket)
	c.Stderr = os.Stderr
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(3*time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() { guard.Stop(); _ = c.Process.Kill(); _ = c.Wait() })
	source, err := inspect.Open(r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	snapshot, err := source.Fetch()
	if err != nil {
		t.Fatal(err)
	}
	port := snapshot.Ports[0].Name
	out := bufio.NewScanner(stdout)
	var rows []string
	for event, name := range inject.Events[:len(inject.Events)-1] {
		var qpn, cq, srq uint32
		for n := 0; n != 3; n, _ = fmt.Sscanf(out.Text(), "%x %d %d", &qpn, &cq, &srq) {
			if !out.Scan() {
				t.Fatal(out.Err())
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
		case strings.HasPrefix(name, "QP_"), strings.HasPrefix(name, "SQ_"), strings.HasPrefix(name, "PATH_"),
			name == "COMM_EST":
			object, about = fmt.Sprintf("qp %x %s", qpn, name), qpn
		}
		if _, err := source.Inject(object); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		// Other lines are consequences: queue pairs of a completion queue in error.
		want := fmt.Sprintf("event %d %x ", event, about)
		for !strings.HasPrefix(out.Text(), want) {
			if !out.Scan() {
				t.Fatalf("%s: no event: %v", object, out.Err())
			}
		}
		words := strings.Fields(object)
		what := map[string]string{"cq": "HANDLE", "srq": "HANDLE", "qp": "QPN", "port": "NAME", "device": "NAME"}[words[0]]
		rows = append(rows, fmt.Sprintf("| %d | `IBV_EVENT_%s` | %s | `%s` |", event, name,
			strings.TrimPrefix(out.Text(), want), strings.Join(slices.Concat([]string{words[0], what}, words[2:]), " ")))
	}
	documented(t, "| number | event | ibv_event_type_str(3) | statement |\n|---|---|---|---|\n", rows)
}
