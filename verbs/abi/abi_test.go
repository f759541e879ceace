package abi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// mirrored pairs each C structure with its Go type.
var mirrored = map[string]any{
	"urdma_abi_header": Header{}, "urdma_abi_hello": HelloRequest{},
	"urdma_abi_hello_response": HelloResponse{}, "urdma_abi_query_device": QueryDeviceRequest{},
	"urdma_abi_open_device": OpenDeviceRequest{}, "urdma_abi_device": Device{},
	"urdma_abi_handle": HandleMessage{}, "urdma_abi_handle_response": HandleMessage{},
	"urdma_abi_reg_mr": RegMRRequest{}, "urdma_abi_reg_mr_response": RegMRResponse{},
	"urdma_abi_create_cq": CreateCQRequest{}, "urdma_abi_resize_cq": ResizeCQRequest{},
	"urdma_abi_cq_response": CQResponse{}, "urdma_abi_qp_cap": QPCap{},
	"urdma_abi_create_qp": CreateQPRequest{}, "urdma_abi_qp_response": QPResponse{},
	"urdma_abi_qp_attr": QPAttr{}, "urdma_abi_modify_qp": ModifyQPRequest{},
	"urdma_abi_query_qp_response": QueryQPResponse{}, "urdma_abi_addr": Addr{},
	"urdma_abi_cm_create_id": CMCreateIDRequest{}, "urdma_abi_cm_bind": CMBindRequest{},
	"urdma_abi_cm_bound": CMBound{}, "urdma_abi_cm_resolve_addr": CMResolveAddrRequest{},
	"urdma_abi_cm_value": CMValueRequest{}, "urdma_abi_cm_param": CMParam{},
	"urdma_abi_cm_conn": CMConnRequest{}, "urdma_abi_cm_set_option": CMSetOptionRequest{},
	"urdma_abi_comp_event": CompEvent{}, "urdma_abi_async_event": AsyncEvent{},
	"urdma_abi_inspect_response": InspectResponse{}, "urdma_abi_capture": CaptureRequest{},
	"urdma_abi_capture_response": CaptureResponse{}, "urdma_abi_capture_ring": CaptureRing{},
	"urdma_abi_capture_record": CaptureRecord{},
	"urdma_abi_cm_event":       CMEvent{}, "urdma_abi_doorbells": Doorbells{},
	"urdma_abi_queue_layout": QueueLayout{}, "urdma_abi_sq_ring": SQRing{}, "urdma_abi_rq_ring": RQRing{}, "urdma_abi_sge": SGE{}, "urdma_abi_sqe": SQE{},
	"urdma_abi_rqe": RQE{}, "urdma_abi_cq_ring": CQRing{}, "urdma_abi_cqe": CQE{},
}

var (
	structRE = regexp.MustCompile(`(?s)struct (urdma_abi_\w+) \{\n(.*?)\n\};`)
	fieldRE  = regexp.MustCompile(`(?m)^\t(?:struct )?\w+ (\w+)(?:\[\w+\])*;`)
)

// TestLayout compiles the header and compares size and every offset.
func TestLayout(t *testing.T) {
	header, err := os.ReadFile("urdma_abi.h")
	if err != nil {
		t.Fatal(err)
	}
	var c strings.Builder
	c.WriteString("#include \"urdma_abi.h\"\n#include <stddef.h>\n#include <stdio.h>\nint main(void){\n")
	var want []string
	seen := 0
	for _, m := range structRE.FindAllStringSubmatch(string(header), -1) {
		v, ok := mirrored[m[1]]
		if !ok {
			t.Errorf("struct %s has no Go mirror in this test's table", m[1])
			continue
		}
		seen++
		typ := reflect.TypeOf(v)
		fields := fieldRE.FindAllStringSubmatch(m[2], -1)
		if len(fields) != typ.NumField() {
			t.Errorf("%s: C has %d fields, Go has %d", m[1], len(fields), typ.NumField())
			continue
		}
		fmt.Fprintf(&c, "printf(\"%s %%zu\\n\", sizeof(struct %s));\n", m[1], m[1])
		want = append(want, fmt.Sprintf("%s %d", m[1], typ.Size()))
		for i, f := range fields {
			fmt.Fprintf(&c, "printf(\"%s.%s %%zu\\n\", offsetof(struct %s, %s));\n", m[1], f[1], m[1], f[1])
			want = append(want, fmt.Sprintf("%s.%s %d", m[1], f[1], typ.Field(i).Offset))
		}
	}
	if seen != len(mirrored) {
		t.Errorf("header has %d structures, the table %d", seen, len(mirrored))
	}
	c.WriteString("return 0;}\n")
	got := runC(t, c.String())
	if g, w := got, strings.Join(want, "\n")+"\n"; g != w {
		t.Errorf("layouts differ\nC:\n%s\nGo:\n%s", g, w)
	}
}

func runC(t *testing.T, src string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "layout.c")
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "layout")
	if out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-I.", "-o", bin, file).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
