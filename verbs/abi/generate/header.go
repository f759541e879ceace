package main

import (
	"fmt"
	"regexp"
	"strings"
)

// header has the declarations of urdma_abi.h; names are without urdma_abi_ or URDMA_ABI_.
type header struct {
	constants []constant
	requests  []request
	// operations are the columns of URDMA_ABI_OPERATIONS.
	operations [][]string
	structs    []cStruct
}

type constant struct{ name, value string } // value is a Go expression

// request is a row of URDMA_ABI_REQUESTS.
type request struct{ number, name, object, request, answer, undo, way, call, text string }

type cStruct struct {
	name   string
	fields []field
}

type field struct {
	name, kind string // kind: type of one element
	isStruct   bool
	count      string // length of an array, as a Go expression; else ""
}

// widths are the sizes in bytes of the field types that are not structures.
var widths = map[string]int{"char": 1, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "int32_t": 4, "uint64_t": 8}

var (
	commentRE  = regexp.MustCompile(`(?s)\s*/\*.*?\*/`)
	constantRE = regexp.MustCompile(`(?m)^(?:\t|#define )URDMA_ABI_(\w+) (?:= )?([^,\n]+)`)
	rowRE      = regexp.MustCompile(`(?m)^\tR\((\d+), (\w+), (\w+), (\w+), (\w+), (\w+), (\w+), "([^"]*)", "([^"]*)"\)`)
	opRE       = regexp.MustCompile(`(?m)^\tO\((.*?)\)`)
	structRE   = regexp.MustCompile(`(?s)\nstruct urdma_abi_(\w+) \{\n(.*?)\n\};`)
	fieldRE    = regexp.MustCompile(`^\t(struct )?(\w+) (\w+)(?:\[(\w+)\])?;$`)
	suffixRE   = regexp.MustCompile(`\b(0x[0-9a-f]+|[0-9]+)u\b`)
	nameRE     = regexp.MustCompile(`\bURDMA_ABI_(\w+)`)
)

// goValue converts a number or an expression from C to Go.
func goValue(c string) string {
	return nameRE.ReplaceAllStringFunc(suffixRE.ReplaceAllString(c, "$1"), func(name string) string {
		return goName(strings.TrimPrefix(name, "URDMA_ABI_"))
	})
}

// parse reads a header whose declarations have the same form as those of urdma_abi.h. A declaration in
// another form is an error, or ignored if Go does not need it.
func parse(text string) (*header, error) {
	h := &header{}
	text = strings.ReplaceAll(commentRE.ReplaceAllString(text, ""), " \\\n\t\t", " ")
	for _, m := range constantRE.FindAllStringSubmatch(text, -1) {
		h.constants = append(h.constants, constant{m[1], goValue(m[2])})
	}
	for _, m := range rowRE.FindAllStringSubmatch(text, -1) {
		h.requests = append(h.requests, request{m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[9]})
	}
	for _, m := range opRE.FindAllStringSubmatch(text, -1) {
		h.operations = append(h.operations, strings.Fields(strings.ReplaceAll(m[1], ",", " ")))
	}
	for _, m := range structRE.FindAllStringSubmatch(text, -1) {
		s, err := parseStruct(m[1], m[2])
		if err != nil {
			return nil, err
		}
		h.structs = append(h.structs, s)
	}
	if structs, rows := strings.Count(text, "\nstruct urdma_abi_"),
		strings.Count(text, "\n\tR("); structs != len(h.structs) || rows != len(h.requests) {
		return nil, fmt.Errorf("%d of %d structures and %d of %d requests have the form that generate reads",
			len(h.structs), structs, len(h.requests), rows)
	}
	return h, nil
}

func parseStruct(name, body string) (cStruct, error) {
	s := cStruct{name: name}
	for line := range strings.SplitSeq(body, "\n") {
		m := fieldRE.FindStringSubmatch(line)
		if m == nil || m[1] == "" && widths[m[2]] == 0 {
			return s, fmt.Errorf("struct urdma_abi_%s: %q is no field in the form that generate reads", name, line)
		}
		s.fields = append(s.fields, field{name: m[3], kind: m[2], isStruct: m[1] != "", count: goValue(m[4])})
	}
	return s, nil
}
