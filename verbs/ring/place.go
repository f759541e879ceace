package ring

import "urdma/verbs/abi"

// This file finds the parts of a queue in its memory, for both sides.

// sqHead is the head of a send queue; an absent one gets a private head.
func sqHead(mem []byte, l *abi.QueueLayout) *abi.SQRing {
	if l.Entries == 0 {
		return new(abi.SQRing)
	}
	return abi.At[abi.SQRing](mem, int(l.HeadOffset))
}

// rqHead is sqHead for receive queues.
func rqHead(mem []byte, l *abi.QueueLayout) *abi.RQRing {
	if l.Entries == 0 {
		return new(abi.RQRing)
	}
	return abi.At[abi.RQRing](mem, int(l.HeadOffset))
}

func slots(mem []byte, l *abi.QueueLayout) []byte {
	return mem[l.SlotsOffset:][:l.Entries*l.Stride]
}
