package control

import (
	"urdma/urdmad/control/account"
	"urdma/urdmad/control/memfd"
)

// fileAmounts returns the resources of memory for queues.
func fileAmounts(bytes int) *account.Amounts {
	return &account.Amounts{account.QueueBytes: uint64(bytes), account.Mappings: 1}
}

// QueueMemory takes a queue's resources and makes its memory of so many bytes, heads included. If
// the client has a pool, the memory is in the pool and at is its location; otherwise it is a file
// of its own.
func (x *Session) QueueMemory(name string, bill *account.Amounts, heads, bytes uint32) (m *memfd.Shared, at memfd.Place,
	err error) {
	if x.pool == nil || bytes > memfd.MostPart {
		bytes = max(4096, (bytes+4095)&^4095)
		bill[account.QueueBytes] += uint64(bytes)
		bill[account.Mappings]++
		m, err = x.NewQueueMemory(name, bill, int(bytes))
		return m, at, err
	}
	if err := x.Take(bill); err != nil {
		return nil, at, err
	}
	if m, at, err = x.pool.New(int(heads), int(bytes-heads)); err != nil {
		x.Give(bill)
	}
	return m, at, err
}

// NewQueueMemory takes a queue's resources and makes its memory as a file of its own.
func (x *Session) NewQueueMemory(name string, bill *account.Amounts, bytes int) (*memfd.Shared, error) {
	if err := x.Take(bill); err != nil {
		return nil, err
	}
	m, err := memfd.New(name, bytes)
	if err != nil {
		x.Give(bill)
	}
	return m, err
}
