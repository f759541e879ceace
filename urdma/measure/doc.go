// Package measure is `urdma ping`: it makes RDMA Reads of memory that the peer's responder (package probe) offers,
// and explains in words what went wrong. It is an ordinary client of urdmad.
package measure
