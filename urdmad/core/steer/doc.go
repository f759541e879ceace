// Package steer gives each of several workers a queue of a port. Of a port with one queue
// worker 0 asks that; what it received for another worker is copied to that one's ring, and
// what others send goes out by way of worker 0. Of a port with a queue for each worker (udp,
// whose sockets have filter.go's program, memif, whose sender chooses by outward.go, and cards)
// each asks its own, and hands over what is another's. Packets from one worker to another, for connections between two clients of
// this urdmad, take the same rings and never reach the port.
//
// A ring has one writer and one reader, and buffers of its own. One that is full drops the
// packet and counts it: a worker that does not keep up loses its own packets alone.
//
// Which worker a packet is for: a connection's by our UDP port number (Numbers), a datagram's
// and a request's by queue pair number, which its worker chose (wire.WorkerOf). Answers about neighbours, group queries and messages to groups go to every worker;
// all else, questions above all, to worker 0, which answers for all.
package steer
