// Package roce implements reliable connections over RoCEv2 (InfiniBand Architecture Specification vol. 1,
// annex A17), with other urdmads and with the kernel's rxe. It has not been tested with hardware yet.
//
// A received packet: Port.Receive (rx.go) checks the header and the CRC and finds the queue pair by its
// number. request.go executes requests, by the operations of the message core; response.go handles
// responses. Package rc decides whether a packet is in order or a duplicate, and whether it is acknowledged
// or refused.
//
// A work request: Transmit (tx.go) sends answers to the peer's Reads and atomics (answer.go) and packets of
// our messages (message.go) alternately, then an acknowledgement.
//
// service.go resolves an rdma_cm port number to a queue pair of type UD. Package datagram sends the
// messages of queue pairs of types UD and UC; datagrams.go has their packet format.
//
// congestion.go tells peers that routers have marked their packets. pace.go then reduces the rate of queue
// pairs of types UD and UC.
//
// stack.go has the ports and the queue pairs, conn.go a connection: a qp.Carrier. end.go ends connections.
// codes.go has the meaning of NAK codes.
//
// The package must not know rdma_cm ids, client rings, client memory, frames or Ethernet.
package roce
