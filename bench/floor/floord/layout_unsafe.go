package main

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The mirror of layout.h; mapShared checks the total size.
const slots = 64

const (
	kindData = 1
	kindAck  = 2
)

type slot struct {
	kind, sequence, ack, solicits uint32
	_                             [48]byte
}

type ring struct {
	head  atomic.Uint32
	_     [60]byte
	tail  atomic.Uint32
	_     [60]byte
	slots [slots]slot
}

type door struct {
	sleeping                   atomic.Uint32
	core                       atomic.Int32
	_                          [56]byte
	turns, naps, yields, kicks atomic.Uint64
	cpu                        atomic.Uint64
	_                          [24]byte
}

type program struct {
	post, complete ring
	landed         atomic.Uint32
	_              [60]byte
}

type shared struct {
	door            [2]door
	program         [2]program
	wire            [2]ring
	ready, run, end atomic.Uint32
	_               [52]byte
}

func mapShared(fd, size int) (*shared, error) {
	if want := int(unsafe.Sizeof(shared{})); size != want {
		return nil, fmt.Errorf("floord: the C side has %d bytes, this one %d: layout.h and layout_unsafe.go differ", size,
			want)
	}
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("floord: mapping: %w", err)
	}
	return (*shared)(unsafe.Pointer(&memory[0])), nil
}
