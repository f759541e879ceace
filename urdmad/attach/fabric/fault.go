package fabric

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors are the values of the error counters of PortCounters, in its order: from
// SymbolErrorCounter to VL15Dropped.
type Errors [vl15Dropped + 1]uint64

var (
	// ErrNotFound reports that the subnet has no such port.
	ErrNotFound = errors.New("fabric: the subnet has not")
	// ErrWhich reports that a name fits several ports.
	ErrWhich = errors.New("fabric: which is meant")
)

// Inject adds errors to the counters of a port. With look it changes nothing and only reports
// whether the port exists. The port is named by its node, followed by a slash and its number
// unless the node has one port only. The node is the name of a urdmad device, a NodeDescription,
// or a GUID in hexadecimal after 0x.
func (s *Subnet) Inject(port string, errors Errors, look bool) error {
	e, err := s.findPort(port)
	if err != nil || look {
		return err
	}
	for i, n := range errors {
		e.errors[i] += n
	}
	return nil
}

// find returns the node with a name.
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

// findPort returns the port with a name.
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
