package abi

import (
	"flag"
	"fmt"
	"go/types"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write urdma_abi_layout.h anew")

// mirrorOf finds the Go type of a C structure: the same name but for underscores
// and case, perhaps with Request or Message at its end.
func mirrorOf(structs map[string]*types.Struct, c string) (name string, s *types.Struct) {
	for name, s := range structs {
		switch strings.TrimPrefix(folded(name), folded(c)) {
		case "", "request", "message":
			return name, s
		}
	}
	return "", nil
}

// TestStructures: every structure of the header has its Go type and the reverse,
// with the same fields in the same places.
func TestStructures(t *testing.T) {
	structs := readGo(t, "abi.go").structs
	mirrored := map[string]bool{}
	for _, c := range readHeader(t).structs {
		name, s := mirrorOf(structs, c.name)
		if s == nil {
			t.Errorf("struct urdma_abi_%s has no type in abi.go", c.name)
			continue
		}
		mirrored[name] = true
		if s.NumFields() != len(c.fields) {
			t.Errorf("struct urdma_abi_%s has %d fields, %s has %d", c.name, len(c.fields), name, s.NumFields())
			continue
		}
		for i, f := range c.fields {
			if got := s.Field(i).Name(); folded(got) != folded(f) {
				t.Errorf("struct urdma_abi_%s: field %d is %s, %s has %s there", c.name, i, f, name, got)
			}
		}
	}
	for name := range structs {
		if !mirrored[name] {
			t.Errorf("type %s has no structure in urdma_abi.h", name)
		}
	}
}

// layout is the text of urdma_abi_layout.h: what Go's types make of the header's
// structures.
func layout(t *testing.T) string {
	structs := readGo(t, "abi.go").structs
	var b strings.Builder
	b.WriteString("/* Written by go test ./verbs/abi -update: C lays out the structures of urdma_abi.h\n" +
		" * as Go does, or nothing that includes this compiles. */\n#include <stddef.h>\n\n#include \"urdma_abi.h\"\n")
	for _, c := range readHeader(t).structs {
		_, s := mirrorOf(structs, c.name)
		if s == nil || s.NumFields() != len(c.fields) {
			continue // TestStructures complains
		}
		var fields []*types.Var
		for f := range s.Fields() {
			fields = append(fields, f)
		}
		tag := "struct urdma_abi_" + c.name
		fmt.Fprintf(&b, "\n_Static_assert(sizeof(%s) == %d, \"%s\");\n", tag, sizes.Sizeof(s), c.name)
		for i, at := range sizes.Offsetsof(fields) {
			fmt.Fprintf(&b, "_Static_assert(offsetof(%s, %s) == %d && sizeof(((%s *)0)->%s) == %d, \"%s\");\n",
				tag, c.fields[i], at, tag, c.fields[i], sizes.Sizeof(fields[i].Type()), c.fields[i])
		}
	}
	return b.String()
}

// TestLayout: urdma_abi_layout.h is what it has to be, and holds.
func TestLayout(t *testing.T) {
	const file = "urdma_abi_layout.h"
	want := layout(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("%s is old (%v): go test ./verbs/abi -update", file, err)
	}
	runC(t, want+"int main(void) { return 0; }\n")
}

// TestConstants: every constant of the header has its Go constant of the same
// value and the reverse; the names differ in underscores and case alone.
func TestConstants(t *testing.T) {
	c := map[string]string{}
	var src strings.Builder
	src.WriteString("#include <stdio.h>\n#include \"urdma_abi.h\"\nint main(void) {\n")
	names := readHeader(t).constants
	for _, name := range names {
		fmt.Fprintf(&src, "printf(\"%%lld\\n\", (long long)URDMA_ABI_%s);\n", name)
	}
	for i, value := range runC(t, src.String()+"return 0; }\n") {
		c[folded(names[i])] = value
	}
	compare(t, c, readGo(t, "abi.go").constants)
}

// compare reports where two tables, of folded C names and of Go names, differ.
func compare(t *testing.T, c, gone map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		value, ok := c[folded(name)]
		if !ok || value != gone[name] {
			t.Errorf("constant %s is %s, in C %q", name, gone[name], value)
		}
		delete(c, folded(name))
	}
	for name, value := range c {
		t.Errorf("C's constant %s (%s) has no Go constant", name, value)
	}
}
