package wire

// WorkerBits is the number of low bits in a port or queue pair number that choose one of several workers. A sender
// that does not know how many workers its peer has can tell by these bits which packets may be for different ones,
// and so can a network card (dpdk's rssBits has the same value).
const WorkerBits = 3

// WorkerOf returns the worker that chose a UDP port number, queue pair number or communication ID, of workers in
// all (at most 1<<WorkerBits).
func WorkerOf(number uint32, workers int) int { return int(number&(1<<WorkerBits-1)) % workers }
