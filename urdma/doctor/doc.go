// Package doctor finds reasons why RDMA through urdmad does not work on a machine, and what to do about them.
// facts.go gathers facts about the machine; the other files judge the facts, so that a test can make up any
// machine.
package doctor
