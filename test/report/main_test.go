package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	in := `{"Action":"build-output","ImportPath":"p","Output":"p/x.go:1: broken\n"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: MEASURED idle: 1 %\n"}
{"Action":"pass","Package":"p","Test":"TestA/part","Elapsed":9}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":9.25}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: wrong byte\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: needs root: makes namespaces\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}
{"Action":"output","Package":"q","Output":"ok  \tq\t0.1s\n"}
{"Action":"pass","Package":"q","Elapsed":10}
{"Action":"pass","Package":"q","Elapsed":0.5}
go: no such tool
`
	var out strings.Builder
	s, err := report(strings.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	if s.passed != 2 || s.failed != 2 || len(s.skipped) != 1 {
		t.Fatalf("%+v", s)
	}
	s.print(&out)
	for _, want := range []string{"x.go:1: broken", "MEASURED idle: 1 %", "wrong byte", "ok  \tq",
		"     10.5  q\n      9.2  p TestA\n      0.0  p TestC\n", "go: no such tool",
		"  p TestB: needs root: makes namespaces\n", "FAIL: 2 passed, 2 failed, 1 skipped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "RUN   TestA") {
		t.Errorf("the report tells of tests that passed:\n%s", out.String())
	}
}
