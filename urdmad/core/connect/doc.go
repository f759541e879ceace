// Package connect lets the connection manager (package cm) set up connections of the carriers. It
// implements cm.Network with the parts of engine.Engine, and engine.Handler with cm.Manager. It decides nothing.
// Only control, the daemon and tests may import it.
//
// network.go has what is the same on every port, and chooses a port's protocol: packet.go has TRP, stream.go TCP,
// rdma.go RoCEv2. conn.go has what their connections have in common, and those within one urdmad. number.go
// connects queue pairs by number.
package connect
