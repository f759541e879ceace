package memif

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Constants of the control protocol, as in net_memif's memif.h.
const (
	cookie  = 0x3E31F20
	version = 2 << 8 // 2.0

	messageSize = 128
	nameSize    = 32
	secretSize  = 24
	reasonSize  = 96

	maxLog2Ring = 14 // net_memif's limit
	minLog2Ring = 3  // our own lower limit for slots
)

// kind is the first field of every message.
type kind uint16

const (
	kindNone kind = iota
	kindAck
	kindHello
	kindInit
	kindAddRegion
	kindAddRing
	kindConnect
	kindConnected
	kindDisconnect
)

var kindNames = [...]string{"none", "ack", "hello", "init", "add-region", "add-ring", "connect", "connected",
	"disconnect"}

func (k kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint16(k))
}

// ringC2S marks an add-ring message for a ring from client to server; without it the ring is from server to
// client.
const ringC2S = 1

// modeEthernet is the only supported interface mode.
const modeEthernet = 0

// message is one control message: packed little-endian fields at fixed offsets after the kind.
type message [messageSize]byte

func newMessage(k kind) (m message) {
	binary.LittleEndian.PutUint16(m[0:], uint16(k))
	return m
}

func (m *message) kind() kind { return kind(binary.LittleEndian.Uint16(m[0:])) }

type hello struct {
	name               string
	minVersion         uint16
	maxVersion         uint16
	maxRegion          uint16
	maxS2CRing         uint16
	maxC2SRing         uint16
	maxLog2RingEntries uint8
}

func (h hello) encode() message {
	m := newMessage(kindHello)
	putString(m[2:2+nameSize], h.name)
	binary.LittleEndian.PutUint16(m[34:], h.minVersion)
	binary.LittleEndian.PutUint16(m[36:], h.maxVersion)
	binary.LittleEndian.PutUint16(m[38:], h.maxRegion)
	binary.LittleEndian.PutUint16(m[40:], h.maxS2CRing)
	binary.LittleEndian.PutUint16(m[42:], h.maxC2SRing)
	m[44] = h.maxLog2RingEntries
	return m
}

func (m *message) hello() hello {
	return hello{
		name:       getString(m[2 : 2+nameSize]),
		minVersion: binary.LittleEndian.Uint16(m[34:]),
		maxVersion: binary.LittleEndian.Uint16(m[36:]),
		maxRegion:  binary.LittleEndian.Uint16(m[38:]),
		maxS2CRing: binary.LittleEndian.Uint16(m[40:]),
		maxC2SRing: binary.LittleEndian.Uint16(m[42:]), maxLog2RingEntries: m[44],
	}
}

type initMsg struct {
	version uint16
	id      uint32
	mode    uint8
	secret  [secretSize]byte
	name    string
}

func (i initMsg) encode() message {
	m := newMessage(kindInit)
	binary.LittleEndian.PutUint16(m[2:], i.version)
	binary.LittleEndian.PutUint32(m[4:], i.id)
	m[8] = i.mode
	copy(m[9:9+secretSize], i.secret[:])
	putString(m[33:33+nameSize], i.name)
	return m
}

func (m *message) init() initMsg {
	i := initMsg{
		version: binary.LittleEndian.Uint16(m[2:]),
		id:      binary.LittleEndian.Uint32(m[4:]),
		mode:    m[8],
		name:    getString(m[33 : 33+nameSize]),
	}
	copy(i.secret[:], m[9:])
	return i
}

type addRegion struct {
	index uint16
	size  uint64
}

func (a addRegion) encode() message {
	m := newMessage(kindAddRegion)
	binary.LittleEndian.PutUint16(m[2:], a.index)
	binary.LittleEndian.PutUint64(m[4:], a.size)
	return m
}

func (m *message) addRegion() addRegion {
	return addRegion{binary.LittleEndian.Uint16(m[2:]), binary.LittleEndian.Uint64(m[4:])}
}

type addRing struct {
	flags      uint16
	index      uint16
	region     uint16
	offset     uint32
	log2       uint8
	privHeader uint16
}

func (a addRing) encode() message {
	m := newMessage(kindAddRing)
	binary.LittleEndian.PutUint16(m[2:], a.flags)
	binary.LittleEndian.PutUint16(m[4:], a.index)
	binary.LittleEndian.PutUint16(m[6:], a.region)
	binary.LittleEndian.PutUint32(m[8:], a.offset)
	m[12] = a.log2
	binary.LittleEndian.PutUint16(m[13:], a.privHeader)
	return m
}

func (m *message) addRing() addRing {
	return addRing{
		flags:      binary.LittleEndian.Uint16(m[2:]),
		index:      binary.LittleEndian.Uint16(m[4:]),
		region:     binary.LittleEndian.Uint16(m[6:]),
		offset:     binary.LittleEndian.Uint32(m[8:]),
		log2:       m[12],
		privHeader: binary.LittleEndian.Uint16(m[13:]),
	}
}

// connectMsg makes a connect or connected message, which contains the sender's interface name.
func connectMsg(k kind, name string) message {
	m := newMessage(k)
	putString(m[2:2+nameSize], name)
	return m
}

func (m *message) interfaceName() string { return getString(m[2 : 2+nameSize]) }

func disconnectMsg(reason string) message {
	m := newMessage(kindDisconnect)
	putString(m[6:6+reasonSize], reason)
	return m
}

func (m *message) disconnect() (code uint32, reason string) {
	return binary.LittleEndian.Uint32(m[2:]), getString(m[6 : 6+reasonSize])
}

// putString copies s and keeps room for the terminating zero.
func putString(b []byte, s string) { copy(b[:len(b)-1], s) }

// getString reads up to the first zero and drops unprintable characters.
func getString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	clean := make([]byte, len(b))
	for i, c := range b {
		if c < 0x20 || c > 0x7e {
			c = '?'
		}
		clean[i] = c
	}
	return string(clean)
}
