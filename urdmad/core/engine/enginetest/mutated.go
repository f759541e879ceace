package enginetest

import (
	"bytes"
	"testing"
	"time"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// Mutated is a pair of queue pairs whose programs exchange messages of all kinds, and a change to one of
// the packets.
type Mutated struct {
	*NumberPair
	*Injected
	Source, Inbox   *Region      // of A's program, that B has no right to
	Open            [2]*Region   // by program: the other may read and write it
	Guards          [2]*Region   // nobody may
	Readable        [2]*Region   // the other may only read it
	Writable        [2]*Region   // the other may only write it
	Received, Fetch *Region      // where B's receives and B's Read go
	Done            [2][]abi.CQE // of sends
	Got             [2][]abi.CQE // of receives
}

const (
	sendsOfA, sendsOfB = 7, 3
	mutationReceives   = 6
)

// NewMutated returns one in a new world, whose queue pairs are connected by number.
func NewMutated(t *testing.T, o Options) *Mutated { return MutatedIn(New(t, o), false) }

// MutatedIn is NewMutated in a given world; local: both queue pairs are of host A.
func MutatedIn(w *World, local bool) *Mutated {
	m := &Mutated{NumberPair: ConnectedPairIn(w, local, 2), Injected: NewInjected(w)}
	a, b := m.QA.Client, m.QB.Client
	m.Source, m.Inbox = a.Register(1<<14, 0), a.Register(1<<14, mem.LocalWrite)
	m.Received, m.Fetch = b.Register(1<<14, mem.LocalWrite), b.Register(1<<14, mem.LocalWrite)
	for i, c := range []*Client{a, b} {
		m.Open[i] = c.Register(1<<16, ReadWrite|mem.RemoteAtomic)
		m.Guards[i] = c.Register(1<<12, 0)
		m.Readable[i], m.Writable[i] = c.Register(1<<12, mem.RemoteRead), c.Register(1<<12, mem.LocalWrite|mem.RemoteWrite)
		for _, r := range []*Region{m.Guards[i], m.Writable[i]} {
			copy(r.Bytes, bytes.Repeat([]byte{0x5e}, 1<<12))
		}
	}
	for i := range m.Source.Bytes {
		m.Source.Bytes[i] = byte(i*7)%64 + 1
	}
	for i := range m.Open[0].Bytes {
		m.Open[0].Bytes[i], m.Open[1].Bytes[i] = byte(i*5)%64+65, byte(i*3)%64+128
	}
	return m
}

// Messages has both programs post their messages, and waits until all have completed.
func (m *Mutated) Messages() {
	m.Post()
	m.Settle(sendsOfA, sendsOfB)
}

// Post has both programs post their messages.
func (m *Mutated) Post() {
	for i := range mutationReceives {
		m.QA.PostRecv(uint64(i), m.Inbox.SGE(8192, 4096))
		m.QB.PostRecv(uint64(i), m.Received.SGE(0, 4096))
	}
	to := m.Open[1]
	m.QA.Post(Send(0), m.Source.SGE(0, 3000))
	m.QA.Post(Write(1, to, 8192), m.Source.SGE(3000, 3000))
	m.QA.Post(WithImmediate(Write(2, to, 16384), 9), m.Source.SGE(0, 900))
	m.QA.Post(Read(3, to, 0), m.Inbox.SGE(0, 3000))
	m.QA.Post(FetchAdd(4, to, 32768, 1), m.Inbox.SGE(3000, 8))
	m.QA.Post(CmpSwap(5, to, 32776, 0, 7), m.Inbox.SGE(3008, 8))
	m.QA.Post(Send(6), m.Source.SGE(0, 10))
	m.QB.Post(Read(0, m.Open[0], 0), m.Fetch.SGE(0, 3000))
	m.QB.Post(Send(1), m.Fetch.SGE(4096, 2000))
	m.QB.Post(Read(2, m.Open[0], 4096), m.Fetch.SGE(3000, 1000))
}

// Settle waits until the given number of sends of each program has completed.
func (m *Mutated) Settle(ofA, ofB int) {
	for end := m.Now() + clock.Time(time.Minute); m.Now() < end; m.Pass(5 * time.Millisecond) {
		for i, q := range []*QP{m.QA, m.QB} {
			m.Done[i] = append(m.Done[i], q.Send.Poll()...)
			m.Got[i] = append(m.Got[i], q.Recv.Poll()...)
		}
		if len(m.Done[0]) >= ofA && len(m.Done[1]) >= ofB {
			return
		}
	}
}

// Check verifies the properties that hold for any packet: memory without rights is neither written nor
// read, and each message completes once.
func (m *Mutated) Check() {
	m.T.Helper()
	m.CheckMemory()
	m.completed(0, sendsOfA)
	m.CompletedB()
}

// Keys are regions that a packet may come to name, of all rights.
func (m *Mutated) Keys() []*Region {
	return []*Region{m.Guards[0], m.Guards[1], m.Source, m.Inbox, m.Open[0], m.Open[1], m.Received, m.Fetch,
		m.Readable[0], m.Readable[1], m.Writable[0], m.Writable[1]}
}

// CheckMemory verifies that memory without rights is neither written nor read.
func (m *Mutated) CheckMemory() {
	m.T.Helper()
	for _, q := range []*QP{m.QA, m.QB} {
		for _, err := range q.Client.Faults {
			m.T.Errorf("memory was accessed that nobody has given the right for: %v", err)
		}
	}
	want := bytes.Repeat([]byte{0x5e}, 1<<12)
	for i, g := range m.Guards {
		if !bytes.Equal(g.Bytes, want) {
			m.T.Errorf("memory without rights of program %d was written", i)
		}
	}
	for i := range m.Source.Bytes {
		if m.Source.Bytes[i] != byte(i*7)%64+1 {
			m.T.Fatalf("what A sends was written at %d", i)
		}
	}
	for name, r := range map[string]*Region{"what A reads": m.Inbox, "what B receives": m.Received,
		"what B reads": m.Fetch} {
		if bytes.Contains(r.Bytes, want[:8]) {
			m.T.Errorf("%s has come from memory without rights", name)
		}
	}
}

// CompletedB verifies that each message of B's program has completed once.
func (m *Mutated) CompletedB() {
	m.T.Helper()
	m.completed(1, sendsOfB)
}

// completed verifies that so many sends of a program have completed, each once.
func (m *Mutated) completed(i, posted int) {
	m.T.Helper()
	seen := map[uint64]bool{}
	for _, e := range m.Done[i] {
		if seen[e.WRID] {
			m.T.Errorf("send %d of program %d has completed twice", e.WRID, i)
		}
		seen[e.WRID] = true
	}
	if len(seen) < posted {
		m.T.Errorf("%d of %d sends of program %d have completed", len(seen), posted, i)
	}
	if len(m.Got[i]) > mutationReceives {
		m.T.Errorf("program %d has %d receives", i, len(m.Got[i]))
	}
}

// Well reports whether all has gone well.
func (m *Mutated) Well() bool {
	for _, list := range append(m.Done[:], m.Got[:]...) {
		for _, e := range list {
			if e.Status != abi.StatusSuccess {
				return false
			}
		}
	}
	return true
}

// Right checks that every byte is where it belongs, and that the connection goes on.
func (m *Mutated) Right() {
	m.T.Helper()
	to := m.Open[1].Bytes
	for name, differ := range map[string]bool{
		"the Send":                !bytes.Equal(m.Received.Bytes[:10], m.Source.Bytes[:10]),
		"the Write":               !bytes.Equal(to[8192:][:3000], m.Source.Bytes[3000:][:3000]),
		"the Write's immediate":   !bytes.Equal(to[16384:][:900], m.Source.Bytes[:900]),
		"A's Read":                !bytes.Equal(m.Inbox.Bytes[:3000], to[:3000]),
		"the atomic, what it got": m.Inbox.Bytes[3000]+1 != to[32768],
		"B's Read":                !bytes.Equal(m.Fetch.Bytes[:3000], m.Open[0].Bytes[:3000]),
		"B's second Read":         !bytes.Equal(m.Fetch.Bytes[3000:][:1000], m.Open[0].Bytes[4096:][:1000]),
		"between the Writes": to[8192-1] != byte((8192-1)*3%256)%64+128 ||
			to[8192+3000] != byte((8192+3000)*3%256)%64+128,
	} {
		if differ {
			m.T.Errorf("%s: wrong bytes", name)
		}
	}
	if len(m.Got[1]) != 3 || len(m.Got[0]) != 1 {
		m.T.Errorf("%d and %d receives, expected 1 and 3", len(m.Got[0]), len(m.Got[1]))
	}
}
