// Package ibcm knows the bytes of InfiniBand's communication management (InfiniBand
// Architecture Specification vol. 1, section 12.6): management datagrams of 256 bytes
// that set up and end the connections of queue pairs, and the header that rdma_cm puts
// in front of a request's private data (annex A11).
//
// message.go has the messages, address.go rdma_cm's header and service IDs. The rules of
// package wire hold here: big-endian fields, Parse for a stranger's bytes and Put for
// ours, errors that are package variables.
package ibcm
