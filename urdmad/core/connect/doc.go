// Package connect lets the connection manager (package cm) set up connections
// of the carriers: it is cm.Network over engine.Engine's rooms, and trp.Handler over
// cm.Manager. It translates and decides nothing. Control, the daemon and tests
// import it, and nobody else.
package connect
