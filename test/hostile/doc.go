// Package hostile holds the tests that put hostile clients and a hostile network
// beside well-behaved programs on a real urdmad: it must neither fall, nor keep
// anything of theirs, nor give the others a wrong byte.
//
// The well-behaved pair is test/bystander; client_test.go is a hostile client (a
// process of its own: this test's program again), hostile_test.go starts, kills
// and counts. network_test.go is a hostile host (another such process), ends_test.go
// its places on a wire, roce_attacker_test.go what it sends where RoCEv2 is spoken,
// hostile_network_test.go what has to hold out against it.
// stream_attacker_test.go is a host that speaks raw TCP to a tcp port,
// hostile_stream_test.go what has to hold out against it. trespass_test.go is what
// harms nobody but who does it, so that others would not show it: each deed and the answer that it is due.
//
// It was checked to notice that urdmad no longer
//   - bounds the posted index of a send queue, a receive queue or a shared one
//     (trespass_test.go, "send index" and its kin)
//   - compares the protection domain of a remote STag with the queue pair's
//     ("another domain")
//   - keeps a memory window to the bytes that it is bound to ("a window")
//   - keeps a region to its bytes ("a region", "more than its own region")
//   - verifies the CRC of RoCEv2 (roce_attacker_test.go, corruptRoCE, on af_packet)
//   - verifies the UDP checksum of frames (network_test.go, corrupt, on af_packet;
//     on udp that is the kernel's, and the same packets are sent)
//
// On af_xdp the attackers hear nothing, since XDP takes the frames before packet
// sockets see them: there they forge and flood, and replay nothing.
//
// URDMA_SEED sets the seed of the clients; URDMA_LONG=1 makes it two minutes a wire.
package hostile
