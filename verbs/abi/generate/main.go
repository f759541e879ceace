// Command generate writes the Go files that mirror urdma_abi.h. go generate ./verbs/abi runs it.
//
//	generate      writes the files that are out of date
//	generate -l   prints the names of those files instead
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"slices"
	"strings"
)

func main() {
	list := flag.Bool("l", false, "print which files are not current, and write nothing")
	flag.Parse()
	if err := run(*list); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(list bool) error {
	text, err := os.ReadFile("urdma_abi.h")
	if err != nil {
		return err
	}
	h, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("urdma_abi.h: %w", err)
	}
	if err := write("abi_gen.go", h.abi(), list); err != nil {
		return err
	}
	return write("../../urdmad/control/objects/dispatch_gen.go", h.dispatch(), list)
}

func write(name, text string, list bool) error {
	want, err := format.Source([]byte("// Code generated from urdma_abi.h by urdma/verbs/abi/generate; DO NOT EDIT.\n\n" +
		text))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch have, _ := os.ReadFile(name); {
	case bytes.Equal(have, want):
		return nil
	case list:
		fmt.Println(name)
		return nil
	}
	return os.WriteFile(name, want, 0o644)
}

// abi returns the text for package abi: constants, requests, structures.
func (h *header) abi() string {
	var b strings.Builder
	b.WriteString("package abi\n\n// URDMA_ABI_*.\nconst (\n")
	for _, c := range h.constants {
		fmt.Fprintf(&b, "%s = %s\n", goName(c.name), c.value)
	}
	b.WriteString(")\n\n// The requests: enum urdma_abi_type.\nconst (\n")
	for _, r := range h.requests {
		fmt.Fprintf(&b, "%s Type = %s\n", goName(r.name), r.number)
	}
	b.WriteString(")\n\nvar requests = [...]request{\n")
	for _, r := range h.requests {
		fmt.Fprintf(&b, "%s: {%q, Size[%s](), %s, %s,\n%q, %q},\n", goName(r.name), r.name, h.typeName(r.request),
			goName(r.undo), goName(r.way), r.call, r.text)
	}
	b.WriteString("}\n\nvar operations = [...]Operation{\n")
	for _, o := range h.operations {
		rdmap, right := "rdmap"+goName(o[2]), "Access"+goName(o[3])
		if o[2] == "NONE" {
			rdmap = "NoRDMAP"
		}
		if o[3] == "NONE" {
			right = "0"
		}
		fmt.Fprintf(&b, "WR%s: {%q, WC%s, %s, %s,\n", goName(o[0]), o[0], goName(o[1]), rdmap, right)
		for _, does := range o[4:] {
			fmt.Fprintf(&b, "%v, ", does == "1")
		}
		b.WriteString("},\n")
	}
	b.WriteString("}\n")
	for _, s := range h.structs {
		fmt.Fprintf(&b, "\n// %s is struct urdma_abi_%s.\ntype %[1]s struct {\n", h.typeName(s.name), s.name)
		for _, f := range s.fields {
			fmt.Fprintf(&b, "%s %s\n", goName(f.name), h.fieldType(s, f))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// dispatch returns the text for urdmad: the table from requests to the functions and methods that handle
// them. Requests that LOOK are left out, because attached features handle them, and those that package
// control handles.
func (h *header) dispatch() string {
	var b strings.Builder
	b.WriteString("package objects\n\nimport (\n\"urdma/urdmad/control\"\n\"urdma/verbs/abi\"\n)\n\n" +
		"// requests are answered for objects.\nvar requests = map[abi.Type]control.Request{\n")
	for _, r := range h.requests {
		if r.way == "LOOKS" || slices.Contains([]string{"BATCH", "HELLO", "QUERY_DEVICE"}, r.name) {
			continue
		}
		method := unexported(strings.TrimPrefix(r.name, "CM_"))
		if r.object != "session" {
			method = "(*" + receiver(r.object) + ")." + method
		}
		fmt.Fprintf(&b, "abi.%s: control.Answer(%s),\n", goName(r.name), method)
	}
	b.WriteString("}\n")
	return b.String()
}

func receiver(object string) string {
	switch object {
	case "cm_channel":
		return "EventChannel"
	case "context", "channel", "flow":
		return goName(object)
	}
	return strings.ToUpper(object)
}

// unexported is goName with a small first letter.
func unexported(c string) string {
	first, rest, _ := strings.Cut(strings.ToLower(c), "_")
	return first + goName(rest)
}

// typeName returns a structure's name in Go: structures of requests end in Request; structures used as both
// request and response end in Message.
func (h *header) typeName(c string) string {
	asked, answered := false, false
	for _, r := range h.requests {
		asked, answered = asked || r.request == c, answered || r.answer == c
	}
	switch name := goName(c); {
	case c == "header" || !asked:
		return name
	case answered:
		return name + "Message"
	default:
		return name + "Request"
	}
}

func (h *header) fieldType(s cStruct, f field) string {
	var kind string
	switch {
	case s.name == "header" && f.name == "type":
		kind = "Type"
	case f.isStruct:
		kind = h.typeName(strings.TrimPrefix(f.kind, "urdma_abi_"))
	case strings.HasSuffix(f.name, "_be"): // not in the machine's byte order
		return fmt.Sprintf("[%d]byte", widths[f.kind])
	case f.kind == "char", f.kind == "uint8_t" && f.count != "":
		kind = "byte"
	default:
		kind = strings.TrimSuffix(f.kind, "_t")
	}
	if f.count != "" {
		return "[" + f.count + "]" + kind
	}
	return kind
}

// words are the words whose Go spelling is not one capital and small letters.
var words = map[string]string{}

func init() {
	for w := range strings.FieldsSeq("ABI AH BE CM CQ CQE DGID DLID FDs GID GUID IB ID IOVA IP IPv4 IPv6 IWARP LID LKey MAC MR MS " +
		"MTU MW " +
		"OFlags OptName PD PID PKey PS PSN QKey QP QPN RDMA RKey RNR RoCE RQ RQE SGE SGID SL SQ SQD SQE SRQ SRQN STag TCP TSO " +
		"UDP VLAN WC WR XRCD") {
		words[strings.ToLower(w)] = w
	}
}

// goName converts a C name to Go.
func goName(c string) string {
	var b strings.Builder
	for w := range strings.SplitSeq(strings.ToLower(c), "_") {
		if known, ok := words[w]; ok {
			w = known
		} else if w != "" {
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		b.WriteString(w)
	}
	return b.String()
}
