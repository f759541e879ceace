// Package wireshark holds the dissector with which Wireshark and tshark read
// TRP (docs/WIRE.md). It is a script of theirs, in Lua, and knows nothing of
// the rest of urdma but what docs/WIRE.md says.
package wireshark
