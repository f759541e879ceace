// Package capture writes the frames that urdmad's ports carry to pcapng files,
// for Wireshark and its kin. file.go writes one file, files.go a series of them,
// run.go takes frames from a running urdmad until it is told to end.
//
// It knows nothing of protocols: what a frame says is the reader's to find out
// (wireshark/trp.lua).
package capture
