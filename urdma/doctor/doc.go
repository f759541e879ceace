// Package doctor knows the reasons why RDMA through urdmad may not work on a
// machine, and what helps. facts.go finds out how the machine is, the other
// files judge it, so that a test can make up any machine.
package doctor
