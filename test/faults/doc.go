// Package faults holds the tests that take from a real urdmad and its programs
// what they may lack one day: memory, descriptors, room in file systems, system
// calls, time, their link, or urdmad itself. Beside each fault a checked pair
// (test/bystander) has to go on; what else must hold stands at each test.
//
// stop_test.go stops processes, scarce_test.go takes descriptors and address space,
// cgroup_test.go memory, full_test.go fills file systems, refused_test.go has system
// calls refused, clock_test.go shifts clocks, upgrade_test.go replaces urdmad under
// its programs, link_test.go takes links. URDMA_LONG=1 runs them on more wires and
// more often.
package faults
