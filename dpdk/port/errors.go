package port

import "errors"

// ErrNoBuffer is returned by Retain when no memory is left for a copy.
var ErrNoBuffer = errors.New("port: no buffer left to retain the packet in")
