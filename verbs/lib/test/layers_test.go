package test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// below has, for each folder of verbs/lib ("." is verbs/lib itself), the other folders from which its files
// may include headers and call functions.
var below = map[string][]string{
	"pages":     {"pages/kernel"},
	"session":   {},
	"datapath":  {"session", "pages"},
	"device":    {"datapath", "session"},
	"memory":    {"device", "datapath", "session", "pages"},
	"datagram":  {"device", "datapath", "session"},
	".":         {"memory", "device", "datapath", "session", "pages"},
	"cm":        {".", "datagram", "memory", "device", "datapath", "session"},
	"interpose": {"session"},
	"rsockets":  {"cm", ".", "memory", "device", "pages", "rsockets/datagrams"},

	"pages/kernel":       {},
	"rsockets/datagrams": {"rsockets", "cm", ".", "datagram", "memory", "device"},
}

// publicOnly reports whether a folder may use only the public interface of another; for pages that is
// alloc.h.
func publicOnly(folder, of string) bool {
	return strings.HasPrefix(folder, "rsockets") && !strings.HasPrefix(of, "rsockets") && of != "pages"
}

// abiFolder may be included by all folders.
const abiFolder = "../abi"

func sourcesOf(t *testing.T, folder, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", folder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var includeLine = regexp.MustCompile(`(?m)^\s*#\s*include "([^"]+)"`)

// TestIncludes: files include headers only from folders below their own.
func TestIncludes(t *testing.T) {
	for folder, allowed := range below {
		seen := 0
		for _, file := range sourcesOf(t, folder, "*.[ch]") {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range includeLine.FindAllStringSubmatch(string(text), -1) {
				seen++
				path, err := filepath.Rel("..", filepath.Join(filepath.Dir(file), m[1]))
				if err != nil {
					t.Fatal(err)
				}
				of := filepath.Dir(path)
				if of != folder && (publicOnly(folder, of) || of != abiFolder && !slices.Contains(allowed, of)) {
					t.Errorf("verbs/lib/%s: %s includes %s", folder, filepath.Base(file), path)
				}
			}
		}
		if seen == 0 {
			t.Errorf("verbs/lib/%s includes nothing", folder)
		}
	}
}

// calls returns for each object file the files whose symbols it uses, by source path without .c.
func calls(t *testing.T) map[string]map[string]string {
	t.Helper()
	preload(t)
	const objects = root + "/build/verbs/lib"
	definedIn, used := map[string]string{}, map[string][]string{}
	for folder := range below {
		for _, file := range sourcesOf(t, folder, "*.c") {
			name := strings.TrimSuffix(strings.TrimPrefix(file, "../"), ".c")
			out, err := exec.Command("nm", filepath.Join(objects, name+".o")).Output()
			if err != nil {
				t.Fatalf("nm %s: %v", name, err)
			}
			for line := range strings.Lines(string(out)) {
				f := strings.Fields(line)
				symbol, _, _ := strings.Cut(f[len(f)-1], "@")
				switch kind := f[len(f)-2]; {
				case kind == "U":
					used[name] = append(used[name], symbol)
				case strings.ToUpper(kind) == kind && !definesLibc(name, symbol):
					definedIn[symbol] = name
				}
			}
		}
	}
	graph := map[string]map[string]string{}
	for name, symbols := range used {
		graph[name] = map[string]string{}
		for _, s := range symbols {
			if of, ok := definedIn[s]; ok && of != name {
				graph[name][of] = s
			}
		}
	}
	return graph
}

// definesLibc reports files that define functions of libc again, which are called as libc's, or first
// versions of functions, which nobody calls.
func definesLibc(name, symbol string) bool {
	return name == "pages/interpose" || name == "first_abi" ||
		filepath.Dir(name) == "interpose" && !strings.HasPrefix(symbol, "urdma_")
}

// TestCalls checks the same for calls; and no file calls itself through other files, except in cm and pages.
func TestCalls(t *testing.T) {
	graph := calls(t)
	for name, others := range graph {
		folder := filepath.Dir(name)
		for of, symbol := range others {
			to := filepath.Dir(of)
			if symbol == "ibv_wc_status_str" {
				continue // a table of names, which calls nothing
			}
			if to != folder && !slices.Contains(below[folder], to) {
				t.Errorf("%s.c uses %s of %s.c", name, symbol, of)
			}
			public := strings.HasPrefix(symbol, "ibv_") || strings.HasPrefix(symbol, "rdma_")
			if to != folder && !public && publicOnly(folder, to) {
				t.Errorf("%s.c uses %s of %s.c, which is not public", name, symbol, of)
			}
		}
	}
	if len(graph["session/client"]) == 0 || len(graph["datapath/post"]) == 0 {
		t.Error("the graph of calls is empty")
	}
	for _, name := range slices.Sorted(maps.Keys(graph)) {
		if folder := filepath.Dir(name); folder != "cm" && folder != "pages" {
			if path := wayBack(graph, name, name, map[string]bool{}); path != nil {
				t.Errorf("a circle of calls: %s", strings.Join(path, " -> "))
			}
		}
	}
}

// wayBack returns a path from one file to another, or nil.
func wayBack(graph map[string]map[string]string, from, to string, seen map[string]bool) []string {
	for _, next := range slices.Sorted(maps.Keys(graph[from])) {
		if next == to {
			return []string{from, to}
		}
		if seen[next] {
			continue
		}
		seen[next] = true
		if rest := wayBack(graph, next, to, seen); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}
