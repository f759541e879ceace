// Package hostile runs hostile clients and a hostile network on a real urdmad, next to well-behaved programs.
// urdmad must not crash, must keep nothing that belongs to the attackers, and must give the others no wrong byte.
//
// The well-behaved pair is test/bystander. client_test.go is a hostile client, in a process that executes this
// test's program again; hostile_test.go starts and kills such clients, and counts what remains. network_test.go is
// a hostile host (another such process), ends_test.go has its positions on a wire, roce_attacker_test.go its
// packets for RoCEv2, and hostile_network_test.go the programs that it attacks. stream_attacker_test.go is a host
// that sends raw TCP to a tcp port, hostile_stream_test.go the programs that it attacks. trespass_test.go has
// attacks that harm nobody but the attacker, so the well-behaved pair would not notice them: it checks urdmad's
// answer to each.
//
// The tests were seen to fail when urdmad no longer
//   - checks the bounds of the posted index of a send queue, a receive queue or a shared one
//     (trespass_test.go, "send index" and similar)
//   - compares the protection domain of a remote STag with the queue pair's ("another domain")
//   - limits a memory window to the bytes to which it is bound ("a window")
//   - limits a region to its bytes ("a region", "more than its own region")
//   - verifies the CRC of RoCEv2 (roce_attacker_test.go, corruptRoCE, on af_packet)
//   - verifies the UDP checksum of frames (network_test.go, corrupt, on af_packet; on udp the kernel verifies it,
//     and the same packets are sent)
//
// On af_xdp the attackers receive nothing, since XDP takes the frames before packet sockets see them. There they
// forge and flood, but replay nothing.
//
// URDMA_SEED sets the seed of the clients; URDMA_LONG=1 extends the test to two minutes per wire.
package hostile
