package main

import (
	"reflect"
	"strings"
	"testing"

	"urdma/bench/results"
)

func TestRead(t *testing.T) {
	sweeps, err := read(strings.NewReader(`BenchmarkPairs/64/16pairs-2 	  996426	      1310 ns/op	  48.86 MB/s	      1308 cpu-ns/segment
BenchmarkPairs/65536/4096pairs-2 	  33108	     35808 ns/op	1830.20 MB/s	       750.0 cpu-ns/segment
=== RUN   TestIncast
    fabric_test.go:148:  256 hosts,   64 KiB, a queue of 1024 KiB, loss of 0: first  0.14, all  1.01 of ideal, 0.921 resent, 4 timeouts
    fabric_test.go:148:    8 hosts, 1024 KiB, a queue of 1024 KiB, loss of 0.001: first  0.86, all  1.01 of ideal, 0.325 resent, 0 timeouts
=== RUN   TestAllToAll
    fabric_test.go:163:   16 hosts,   64 KiB, a queue of  256 KiB, loss of 0: first  0.09, all  1.15 of ideal, 0.000 resent, 0 timeouts
`))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]results.Curve{{
		{Name: "Write of 64 B", Points: []results.Point{{X: 16, Y: 1.308}}},
		{Name: "segment of a Write of 64 KiB", Points: []results.Point{{X: 4096, Y: 0.75}}},
	}, {
		{Name: "to one, queue of 1024 KiB", Points: []results.Point{{X: 256, Y: 1.01}}},
		{Name: "to each other, queue of 256 KiB", Points: []results.Point{{X: 16, Y: 1.15}}},
	}}
	for i, s := range sweeps {
		if !reflect.DeepEqual(s.Curves, want[i]) {
			t.Errorf("%s: %+v, expected %+v", s.ID, s.Curves, want[i])
		}
	}
}
