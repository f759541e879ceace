// Package dpdk opens ports: DPDK devices through libdpdk 22.11 or 24.11 (cgo), and our pure Go drivers (memif,
// loopback, udp), with one interface, port.Port.
//
// This is the only production package that imports "C". Each data method calls C once for each burst, with
// arrays in C memory, and allocates nothing.
//
//	spec.go     the settings of a port; which driver they name
//	open.go     OpenPorts: all ports of a daemon
//	native.go   specs for memif, loopback and udp
//	args.go     the EAL's arguments, sized for the ports
//	eal.go      starting and ending the EAL
//	log.go      the EAL's log lines, for slog and for error messages
//	vdev.go     driver defaults (jumbo rings of af_packet, …)
//	probe.go    from a device string to a configured, started port
//	borrowed.go the kernel's network interface that a port uses
//	link.go     the state of a port's link
//	ethport.go  the port.Port of a DPDK port
//	ethqueue.go its port.Queue: one cgo call a burst
//	wake.go     receive interrupts
//	shim.h, .c  the C side: one function per burst
//
// # Facts about libdpdk
//
// rte_eal_init pins its thread, so the caller's affinity is restored; it can run once in a process, so the
// EAL stays up until Cleanup. --no-huge and --in-memory exclude each other; without huge pages the amount of
// memory must be given at start (-m). Two processes of one user need their own --file-prefix. The runtime
// directory stays empty (--no-shconf), and those of killed daemons are removed. rte_eal_init succeeds even if
// a --vdev fails, so devices are probed one by one afterwards and each must become a port. Debian's libdpdk
// loads its drivers from its own directory when linked as a shared library.
//
// Threads that call the data methods should be registered (RegisterThread), or the buffer pools work without
// their caches.
package dpdk
