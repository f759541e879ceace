// Package impair wraps a port's queue in another queue that loses, repeats, delays and reorders
// packets as the wire statements of package inject say. netif uses it in place of the port's
// queue while there are such statements; each packet is then copied.
//
// A packet passes the stages of its direction in order. Random decisions come from each stage's
// seed: the same packets in the same order are treated in the same way.
//
// The package must not know connections, nor the origin of the statements.
package impair
