// Package programtest has functions for tests that run programs: compile.go compiles C programs, build.go builds Go
// programs, daemon.go runs a urdmad for one test, port.go finds TCP port numbers. Tests with several hosts use package
// lab.
package programtest
