package main

import (
	"strconv"
	"strings"
)

// version is set by the linker: -X main.version=1.2.3.
var version = "0.1.0-dev"

// versionNumber packs "1.2.3-anything" as major<<16 | minor<<8 | patch.
func versionNumber(v string) (n uint32) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
	for i, part := range strings.SplitN(v, ".", 3) {
		d, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			break
		}
		n |= uint32(d) << (16 - 8*i)
	}
	return n
}
