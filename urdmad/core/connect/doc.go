// Package connect lets the connection manager (package cm) set up connections of the carriers. It
// implements cm.Network with the parts of engine.Engine, and trp.Handler with cm.Manager. It translates and
// decides nothing. Only control, the daemon and tests may import it.
package connect
