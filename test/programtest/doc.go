// Package programtest has what tests of programs share: C programs are compiled (compile.go), Go programs built
// (build.go), and a urdmad runs for one test (daemon.go). Tests of several hosts have package lab.
package programtest
