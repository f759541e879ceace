package control

import "urdma/verbs/abi"

// inside answers requests whose features still stand in this package.
var inside = map[abi.Type]Request{
	abi.Capture:     by((*Session).capture),
	abi.CaptureStop: by((*Session).captureStop),
	abi.Mark:        by((*Session).mark),
	abi.Explain:     by((*Session).explain),
	abi.Warn:        by((*Session).warn),
}

// Because records why something of the client's has failed; on the worker's thread.
func (x *Session) Because(e *abi.TraceEvent, text string) { x.because(e, text) }
