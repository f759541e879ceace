// Package wireshark holds the dissector with which Wireshark and tshark read
// TRP (docs/WIRE.md). It is a script of theirs, in Lua, and knows nothing of
// the rest of urdma but what docs/WIRE.md says.
package wireshark

import _ "embed"

// Script is trp.lua, as `urdma dissector` prints it. Its head says how to
// install it. Nobody writes to it.
//
//go:embed trp.lua
var Script []byte
