// Package walk shows the way of a message through the core: which packages it visits, one
// behind the other, on each wire. The ways are held by testdata, and docs/ARCHITECTURE.md
// shows them.
//
// Its test builds the core with a line in each function that notes that it was entered
// (go build -overlay), and has two engines exchange a message. The first line of a way counts
// packages and returns between its ends alone: ports, sockets, rings, memory look-ups, timers.
// Not shown are package wire, clocks and rings, and functions that only return an expression.
package walk
