package sysfs

import "strconv"

// Counters are the totals of a port since urdmad started.
type Counters struct {
	RxPackets, TxPackets uint64
	RxBytes, TxBytes     uint64
	RxErrors             uint64 // packets that were malformed
	RxDropped, TxDropped uint64 // packets for which there was no room
	LinkDowns            uint64
}

// SetCounters writes a port's counters to the tree that Write made. errors, which may be nil, are counted in
// addition, by the names of InfiniBand's error counters.
func SetCounters(dir string, p Port, c Counters, errors map[string]uint64) error {
	files := c.files()
	for name, n := range errors {
		files["counters/"+name] += n
	}
	for file, value := range files {
		if err := put(dir, p.dir()+file, strconv.FormatUint(value, 10)); err != nil {
			return err
		}
	}
	return nil
}

// files returns the file names and values of InfiniBand's port counters, and of those that
// RDMA-over-Ethernet drivers add. Data are counted in words of four bytes (InfiniBand
// Architecture Specification vol. 1); events that cannot happen here are 0.
func (c *Counters) files() map[string]uint64 {
	const word = 4
	return map[string]uint64{
		"counters/port_rcv_data":                   c.RxBytes / word,
		"counters/port_rcv_packets":                c.RxPackets,
		"counters/port_rcv_errors":                 c.RxErrors,
		"counters/port_xmit_data":                  c.TxBytes / word,
		"counters/port_xmit_packets":               c.TxPackets,
		"counters/port_xmit_discards":              c.TxDropped,
		"counters/port_xmit_wait":                  0,
		"counters/unicast_rcv_packets":             c.RxPackets,
		"counters/unicast_xmit_packets":            c.TxPackets,
		"counters/multicast_rcv_packets":           0,
		"counters/multicast_xmit_packets":          0,
		"counters/link_downed":                     c.LinkDowns,
		"counters/link_error_recovery":             0,
		"counters/local_link_integrity_errors":     0,
		"counters/excessive_buffer_overrun_errors": 0,
		"counters/port_rcv_constraint_errors":      0,
		"counters/port_rcv_remote_physical_errors": 0,
		"counters/port_rcv_switch_relay_errors":    0,
		"counters/port_xmit_constraint_errors":     0,
		"counters/symbol_error":                    0,
		"counters/VL15_dropped":                    0,
		"hw_counters/lifespan":                     lifespan,
		"hw_counters/rx_dropped":                   c.RxDropped,
		"hw_counters/tx_dropped":                   c.TxDropped,
		"hw_counters/rx_bytes":                     c.RxBytes,
		"hw_counters/tx_bytes":                     c.TxBytes,
	}
}

// lifespan is how long a value stays valid before it is updated, in milliseconds.
const lifespan = 1000
