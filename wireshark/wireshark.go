// Package wireshark holds the Lua dissector with which Wireshark and tshark read
// TRP, the protocol of docs/WIRE.md. It is tested with tshark.
package wireshark

import _ "embed"

// Script is the dissector, as a Lua source file; `urdma dissector` prints it.
//
//go:embed trp.lua
var Script []byte
