package wire

// This file has the extension headers of IPv6 (RFC 8200 section 4).

// Next headers that are extension headers.
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extDestination = 60
)

// maxExtensions is how many bytes of extension headers a packet may have: as many
// as IPv4 has for options.
const maxExtensions = 40

// skipExtensions returns what follows the extension headers at the start of b, which
// shows the first of length bytes, and how long they are. next is what the IPv6
// header says.
//
// A host has to obey what these headers ask, or drop the packet (RFC 8200 section
// 4.2); of what may be ignored, padding and a router alert are all that is seen.
func skipExtensions(next uint8, b []byte, length int) (proto uint8, skipped int, err error) {
	for {
		switch next {
		case extHopByHop:
			if skipped > 0 {
				return 0, 0, ErrIPv6Extension // anywhere but in front
			}
		case extDestination:
		case extRouting:
			return 0, 0, ErrIPv6Routing
		case extFragment:
			return 0, 0, ErrIPv6Fragment
		default:
			return next, skipped, nil
		}
		if length-skipped < 8 {
			return 0, 0, ErrIPv6Extension
		}
		size := 8 + 8*int(b[skipped+1])
		if size > length-skipped || skipped+size > maxExtensions {
			return 0, 0, ErrIPv6Extension
		}
		header := b[skipped : skipped+size]
		if !ignorable(header[2:]) {
			return 0, 0, ErrIPv6Option
		}
		next = header[0]
		skipped += size
	}
}

// ignorable reports whether options are whole and all of them such that a host that
// does not know them skips them (RFC 8200 section 4.2).
func ignorable(options []byte) bool {
	for len(options) > 0 {
		if options[0] == 0 { // Pad1
			options = options[1:]
			continue
		}
		if options[0]>>6 != 0 || len(options) < 2 {
			return false
		}
		size := 2 + int(options[1])
		if size > len(options) {
			return false
		}
		options = options[size:]
	}
	return true
}
