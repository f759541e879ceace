package ring

import (
	"math/bits"

	"urdma/verbs/abi"
)

const (
	sqHeadBytes  = 64
	rqHeadBytes  = 16
	sgeBytes     = 16
	pageBytes    = 4096
	cacheLine    = 64
	qpHeadBytes  = 256
	cqHeadBytes  = 256
	cqEntryBytes = 64
)

// QPLayout computes the shared memory of a queue pair that holds what cap asks
// for: cap's numbers rounded up to what the slots offer, the entries, strides
// and offsets in bytes.
func QPLayout(cap abi.QPCap) abi.QPResponse {
	var r abi.QPResponse
	payload := max(cap.MaxSendSGE*sgeBytes, cap.MaxInline)
	r.SQStride = stride(sqHeadBytes + payload)
	r.RQStride = stride(rqHeadBytes + cap.MaxRecvSGE*sgeBytes)
	r.SQEntries = entries(cap.MaxSendWR)
	r.RQEntries = entries(cap.MaxRecvWR)
	r.SQOffset = qpHeadBytes
	r.RQOffset = r.SQOffset + r.SQEntries*r.SQStride
	r.Bytes = pageAlign(r.RQOffset + r.RQEntries*r.RQStride)
	r.Cap = cap
	r.Cap.MaxInline = r.SQStride - sqHeadBytes
	return r
}

// CQLayout computes the shared memory of a completion queue of at least cqe
// entries.
func CQLayout(cqe uint32) abi.CQResponse {
	n := entries(cqe)
	return abi.CQResponse{
		Entries:       n,
		EntriesOffset: cqHeadBytes,
		Bytes:         pageAlign(cqHeadBytes + n*cqEntryBytes),
	}
}

func stride(n uint32) uint32 { return max(cacheLine, powerOfTwo(n)) }

func entries(n uint32) uint32 { return powerOfTwo(max(n, 1)) }

func powerOfTwo(n uint32) uint32 { return 1 << bits.Len32(n-1) }

func pageAlign(n uint32) uint32 { return (n + pageBytes - 1) &^ (pageBytes - 1) }
