// Package capture writes the frames of urdmad's ports to pcapng files, for Wireshark and similar programs. file.go
// writes a file, run.go takes frames from a running urdmad until it is told to stop.
//
// It knows nothing of protocols: the reader of the file decodes the frames (wireshark/trp.lua).
package capture
