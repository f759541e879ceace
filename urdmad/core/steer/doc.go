// Package steer gives each of several workers a queue of a port. If the port has one queue, worker 0 polls
// it, copies packets for other workers to their rings, and sends their packets. If the port has a queue for
// each worker, each worker polls its own queue and passes on packets for others. Such ports are udp, whose
// sockets use the program in filter.go, memif, whose sender chooses a queue with outward.go, and network
// cards. Packets between two workers, for connections between two clients of this urdmad, use the same
// rings and never reach the port.
//
// A ring has one writer, one reader, and its own buffers. A full ring drops the packet and counts it: a
// worker that is too slow loses only its own packets.
//
// The worker for a packet is found by our UDP port number for connections (Numbers), and for datagrams and
// requests by the queue pair number, which its worker chose (wire.WorkerOf). Answers about neighbours,
// group queries and messages to groups go to every worker. All other packets, mainly requests to the host,
// go to worker 0, which answers for all.
package steer
