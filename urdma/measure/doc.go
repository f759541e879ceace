// Package measure is `urdma ping` and `urdma perf`: RDMA Reads and Writes of
// memory that another urdmad's responder lends (package probe), and what went
// wrong in words. It is a client as any program is. What it returns is numbers;
// text.go shows them.
package measure
