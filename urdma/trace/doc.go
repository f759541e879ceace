// Package trace shows what programs do with urdmad, as it happens: calls, work requests and completions, states and
// asynchronous events, together with the packets.
//
// The records come from a capture (package urdma/capture). output.go makes an Event of each (package event has the
// words) and passes it to one of several outputs: lines.go prints text or JSON, html.go writes a page
// (page.html) that draws the events, pcapng.go adds events to packets, each.go calls a function. packet.go decodes a
// frame.
package trace
