package wire

// This file has the extension headers of IPv6 (RFC 8200 section 4).

// Next headers that are extension headers.
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extDestination = 60
)

// maxExtensions is the most bytes of extension headers that are accepted: as many as IPv4 has for options.
const maxExtensions = 40

// skipExtensions returns the protocol behind the extension headers at the start of b, and the length of those
// headers. b is the beginning of length bytes; next is the next-header field of the IPv6 header.
//
// A host must obey these headers or drop the packet (RFC 8200 section 4.2). Of the options that may be ignored,
// only padding and router alert occur in practice.
func skipExtensions(next uint8, b []byte, length int) (proto uint8, skipped int, err error) {
	for {
		switch next {
		case extHopByHop:
			if skipped > 0 {
				return 0, 0, ErrIPv6Extension // allowed as the first extension only
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

// ignorable reports whether the options are complete and a host that does not know them may skip all of them (RFC
// 8200 section 4.2).
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
