// Package wireshark has the dissector with which Wireshark and tshark read TRP: a Lua script, written from
// docs/WIRE.md alone.
package wireshark
