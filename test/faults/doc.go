// Package faults takes resources away from a real urdmad and its programs: memory, descriptors, room in file
// systems, system calls, time, their link, or urdmad itself. During each fault a checked pair (test/bystander)
// must continue; each test states its further requirements.
//
// stop_test.go stops processes, scarce_test.go takes descriptors and address space, cgroup_test.go memory,
// full_test.go fills file systems, refused_test.go lets system calls fail, clock_test.go shifts clocks,
// upgrade_test.go replaces urdmad under its programs, link_test.go takes links down. URDMA_LONG=1 runs them on
// more wires and more often.
package faults
