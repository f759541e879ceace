package control

import "urdma/verbs/abi"

// inside answers requests whose features still stand in this package.
var inside = map[abi.Type]Request{
	abi.Inspect:     by((*Session).inspect),
	abi.Capture:     by((*Session).capture),
	abi.CaptureStop: by((*Session).captureStop),
	abi.Mark:        by((*Session).mark),
	abi.Admin:       by((*Session).admin),
	abi.Explain:     by((*Session).explain),
	abi.Warn:        by((*Session).warn),
	abi.Inject:      by((*Session).inject),
	abi.OpenUmad:    by((*Session).openUmad),
}
