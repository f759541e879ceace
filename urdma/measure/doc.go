// Package measure is `urdma ping`: RDMA Reads of memory that another urdmad's
// responder lends (package probe), and what went wrong in words. It is a client
// as any program is.
package measure
