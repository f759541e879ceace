// Package impair is a queue of a port around another, that loses, repeats, delays and
// reorders packets as package inject's wire statements say. netif uses it in the place of
// the port's own while there are some: then each packet is copied. Without one the package
// does nothing.
//
// A packet passes the stages of its direction in their order. What it meets there is
// drawn from each stage's seed: the same packets in the same order meet the same fate.
//
// It must not know connections, nor what asked for this.
package impair
