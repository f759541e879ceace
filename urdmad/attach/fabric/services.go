package fabric

import (
	"encoding/binary"
	"math"
	"slices"
)

// serviceRecord is the attribute ServiceRecord, big-endian.
type serviceRecord [serviceSize]byte

const (
	attrServiceRecord = 0x31
	serviceSize       = 176

	offServiceLease = 28
	offServiceKey   = 32
	offServiceName  = 48
	serviceIDBytes  = 26 // ServiceID, ServiceGID, ServiceP_Key: what tells records apart
	forEver         = math.MaxUint32
	maxServices     = 4096
)

func serviceFields() []component {
	bits := []int{64, 128, 16, 16, 32, 128, 512}
	for _, of := range []struct{ n, bits int }{{16, 8}, {8, 16}, {4, 32}, {2, 64}} {
		for range of.n {
			bits = append(bits, of.bits)
		}
	}
	return fields(bits...)
}

// service is a ServiceRecord until its lease is over.
type service struct {
	serviceRecord
	until int64 // Subnet.now
}

// At says what time it is, in seconds of a clock that only goes forward, by which leases end.
func (s *Subnet) At(now int64) {
	s.now = now
	s.services = slices.DeleteFunc(s.services, func(r service) bool { return r.until <= now })
}

// service answers Set and Delete of a ServiceRecord. Who replaces one has to know its key,
// and need not name its own GID.
func (s *Subnet) service(from *endpoint, m MAD) MAD {
	r := serviceRecord(m[adminData:])
	if gid := from.gid(); [16]byte(r[8:]) == [16]byte{} {
		copy(r[8:], gid[:])
	}
	at := slices.IndexFunc(s.services, func(old service) bool {
		return [serviceIDBytes]byte(old.serviceRecord[:]) == [serviceIDBytes]byte(r[:])
	})
	lease := binary.BigEndian.Uint32(r[offServiceLease:])
	switch {
	case m.Method() == MethodSet && at >= 0 && !s.services[at].opens(&r):
		return m.answer(statusInvalidRequest)
	case m.Method() == MethodDelete && at < 0:
		return m.answer(statusNoRecords)
	case m.Method() == MethodDelete || lease == 0:
		if at >= 0 {
			s.services = slices.Delete(s.services, at, at+1)
		}
	case at < 0 && len(s.services) == maxServices:
		return m.answer(statusNoResources)
	default:
		until := int64(math.MaxInt64)
		if lease != forEver {
			until = s.now + int64(lease)
		}
		if at < 0 {
			at, s.services = len(s.services), append(s.services, service{})
		}
		s.services[at] = service{r, until}
	}
	if !m.trusted() {
		clear(r[offServiceKey:offServiceName])
	}
	return m.answerRecord(r[:])
}

// opens reports whether a record has the key of another, or that has none.
func (r *serviceRecord) opens(by *serviceRecord) bool {
	key := [16]byte(r[offServiceKey:])
	return key == [16]byte{} || key == [16]byte(by[offServiceKey:])
}

// serviceRecords are those that there are, without their keys and with what is left of their leases.
func (s *Subnet) serviceRecords(q *query) {
	for i := range s.services {
		r := s.services[i].serviceRecord
		if s.services[i].until != math.MaxInt64 {
			binary.BigEndian.PutUint32(r[offServiceLease:], uint32(s.services[i].until-s.now))
		}
		if q.takes(r[:]) { // also by its key
			clear(r[offServiceKey:offServiceName])
			q.found = append(q.found, r[:]...)
		}
	}
}
