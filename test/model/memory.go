package model

import (
	"slices"
)

// Each side's memory has bytes that are only read, bytes that RDMA may write, and slots for receives. IN has a part
// for each queue pair and direction, so that no two queue pairs write to the same bytes at once.
const (
	outBytes     = 6144
	partBytes    = 6144
	slotBytes    = 5120
	inStart      = outBytes
	inBytes      = 4 * partBytes
	receiveStart = inStart + inBytes
	slots        = 8
	receiveBytes = slots * slotBytes
	memoryBytes  = receiveStart + receiveBytes
	inParts      = 4
	parts        = inParts + slots
)

// unknown is a byte whose value the specification leaves open.
const unknown = -1

// memory is the memory of one side. A part is copied when it changes, so that states share equal parts.
type memory [parts]part

type part struct {
	bytes   []int16
	history uint64 // a hash of all writes: parts of equal history are equal
}

func newMemory() (m memory) {
	for i := range m {
		m[i].bytes = make([]int16, partSize(i))
	}
	return m
}

func partSize(i int) int {
	if i < inParts {
		return partBytes
	}
	return slotBytes
}

// partOf returns the part that an offset of OUT's successors is in, and the offset within.
func partOf(offset int) (part, within int) {
	if offset < receiveStart {
		return (offset - inStart) / partBytes, (offset - inStart) % partBytes
	}
	return inParts + (offset-receiveStart)/slotBytes, (offset - receiveStart) % slotBytes
}

// outByte returns the interpreter's initial byte in OUT.
func outByte(i int) int16 { return int16(byte(i*7 + i>>8 + outBytes)) }

func (m *memory) at(offset int) int16 {
	if offset < outBytes {
		return outByte(offset)
	}
	p, within := partOf(offset)
	return m[p].bytes[within]
}

func (m *memory) read(offset, length int) []int16 {
	data := make([]int16, length)
	for i := range data {
		data[i] = m.at(offset + i)
	}
	return data
}

func (m *memory) write(offset int, data []int16) {
	for len(data) > 0 {
		p, within := partOf(offset)
		n := min(len(data), partSize(p)-within)
		m[p].bytes = slices.Clone(m[p].bytes)
		copy(m[p].bytes[within:], data[:n])
		h := m[p].history*1099511628211 ^ uint64(within)
		for _, b := range data[:n] {
			h = (h ^ uint64(uint16(b))) * 1099511628211
		}
		m[p].history = h + 1
		data, offset = data[n:], offset+n
	}
}

// forget makes bytes unknown.
func (m *memory) forget(offset, length int) {
	m.write(offset, slices.Repeat([]int16{unknown}, length))
}

// differs returns the first offset at which real memory has another byte than the model allows, or -1.
func (m *memory) differs(real []byte) int {
	for i := range outBytes {
		if real[i] != byte(outByte(i)) {
			return i
		}
	}
	offset := inStart
	for p := range m {
		for i, b := range m[p].bytes {
			if b != unknown && byte(b) != real[offset+i] {
				return offset + i
			}
		}
		offset += len(m[p].bytes)
	}
	return -1
}

// word reads 8 bytes of the machine's order; known is false if one of them is unknown.
func (m *memory) word(offset int) (value uint64, known bool) {
	for i, b := range m.read(offset, 8) {
		if b == unknown {
			return 0, false
		}
		value |= uint64(b) << (8 * i)
	}
	return value, true
}

func wordBytes(value uint64) []int16 {
	data := make([]int16, 8)
	for i := range data {
		data[i] = int16(byte(value >> (8 * i)))
	}
	return data
}
