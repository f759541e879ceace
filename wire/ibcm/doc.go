// Package ibcm parses and writes InfiniBand's communication management messages (InfiniBand Architecture
// Specification vol. 1, section 12.6). These are management datagrams of 256 bytes that set up and end connections
// of queue pairs. It also has the header that rdma_cm puts in front of a request's private data (annex A11).
//
// message.go has the messages, address.go rdma_cm's header and service IDs. The rules of package wire hold here:
// big-endian fields, Parse for untrusted bytes and Put for our own values, errors that are package variables.
package ibcm
