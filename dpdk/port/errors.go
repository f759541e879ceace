package port

import "errors"

// ErrNoBuffer is returned by Retain when Retainable packets are retained.
var ErrNoBuffer = errors.New("port: no buffer left to retain the packet in")
