// Package trace shows what programs do with urdmad, as it happens: their calls, work
// requests and completions, states and asynchronous events, beside the packets.
//
// The records are a capture's (package urdma/capture runs it). output.go makes an Event
// of each (package event has the words), and gives it to one of these: lines.go prints text or JSON,
// perfetto.go writes a file for ui.perfetto.dev and chrome://tracing, html.go a page
// (page.html) that draws them, pcapng.go adds events to packets, each.go calls a function.
// packet.go takes a frame apart.
package trace
