package fabric

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors are counts of the error counters of PortCounters, in its order: from SymbolErrorCounter to VL15Dropped.
type Errors [vl15Dropped + 1]uint64

// Fault is what somebody has happen on purpose. What is zero stays as it is.
type Fault struct {
	// At is a node: one of urdmad's devices, or a NodeDescription, or a GUID in hexadecimal behind 0x; or
	// a port of it, its number behind a slash. Of a node of one port that is the port.
	At     string
	Errors Errors // to count at the port besides
	Down   bool   // the port is disabled
	Up     bool   // or no longer
	Name   string // the node's NodeDescription from now on
}

var (
	// ErrNotFound is for what the subnet has not.
	ErrNotFound = errors.New("fabric: the subnet has not")
	// ErrWhich is for what more than one is meant by.
	ErrWhich = errors.New("fabric: which is meant")
)

// Inject has a fault happen; only looking, it says whether it could.
func (s *Subnet) Inject(f *Fault, look bool) error {
	if f.Name != "" {
		n, err := s.find(f.At)
		if err == nil && !look {
			n.desc = f.Name
		}
		return err
	}
	e, err := s.findPort(f.At)
	if err != nil || look {
		return err
	}
	for i, n := range f.Errors {
		e.errors[i] += n
	}
	if (f.Down || f.Up) && e.peer != nil {
		e.off = f.Down
		e.peer.off = e.peer.off && f.Down
		e.train()
		s.sweep()
	}
	return nil
}

// find is the node of a name.
func (s *Subnet) find(name string) (found *node, err error) {
	guid, notGUID := strconv.ParseUint(strings.TrimPrefix(name, "0x"), 16, 64)
	byGUID := notGUID == nil && strings.HasPrefix(name, "0x")
	for _, n := range s.nodes {
		switch {
		case n.device == name && name != "":
			return n, nil
		case n.desc != name && !(byGUID && n.has(guid)):
		case found != nil:
			return nil, fmt.Errorf("%w: %q is the name of several nodes, a GUID is one's", ErrWhich, name)
		default:
			found = n
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w a node %q", ErrNotFound, name)
	}
	return found, nil
}

// findPort is the port of a name.
func (s *Subnet) findPort(name string) (*endpoint, error) {
	n, err := s.find(name)
	num := 1
	if at := strings.LastIndexByte(name, '/'); err != nil && at > 0 {
		if number, bad := strconv.Atoi(name[at+1:]); bad == nil {
			n, err = s.find(name[:at])
			num = number
		}
	} else if err == nil && len(n.ports) > 2 {
		return nil, fmt.Errorf("%w: %q has %d ports, of which %s/1 is the first", ErrWhich, name, len(n.ports)-1, name)
	}
	if err != nil {
		return nil, err
	}
	if num == 0 || n.port(num) == nil {
		return nil, fmt.Errorf("%w a port %q: expected 1 to %d", ErrNotFound, name, len(n.ports)-1)
	}
	return n.port(num), nil
}
