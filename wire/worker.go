package wire

// WorkerBits are the bits of a number, the lowest, that say which of several workers it
// belongs to. A sender that does not know how many workers its peer has can tell by them
// which packets may be for different ones, and so can a network card (dpdk's rssBits are as
// many).
const WorkerBits = 3

// WorkerOf is the worker, of so many (at most 1<<WorkerBits), that chose a UDP port number, a
// queue pair number or a communication ID.
func WorkerOf(number uint32, workers int) int { return int(number&(1<<WorkerBits-1)) % workers }
