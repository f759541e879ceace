// Package roce carries reliable connections over RoCEv2 (InfiniBand Architecture
// Specification vol. 1, annex A17) between urdmads, and with the kernel's
// rxe. It was not tried with hardware yet.
//
// A packet's way: Port.Receive (rx.go) checks the header and the CRC and finds the queue
// pair by its number; request.go has what requests do, by the steps of the message core,
// and response.go what answers do. Package rc decides what is in order, a duplicate, to
// be acknowledged or refused.
//
// A work request's way: Transmit (tx.go) sends answers to the peer's Reads and atomics
// (answer.go) and packets of our messages (message.go) in turn, then an acknowledgement.
//
// service.go asks which queue pair of type UD stands behind a port number. The messages of such
// queue pairs, and of type UC, are package datagram's; datagrams.go has how they look in packets.
//
// congestion.go tells peers that routers have marked their packets; pace.go is how queue pairs of
// types UD and UC send less then.
//
// stack.go has the ports and the queue pairs, conn.go a connection: a qp.Carrier; end.go
// ends it, codes.go has what NAKs stand for.
//
// The package must not know rdma_cm ids, client rings or memory, frames or Ethernet.
package roce
