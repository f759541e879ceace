package trace

import "urdma/verbs/abi"

// each gives events to a function.
type each struct{ fn func(*Event) error }

// Each calls fn for each event. fn must not keep the event; an error of fn ends the trace.
func Each(fn func(*Event) error) Output { return each{fn} }

func (o each) event(e *Event, _ *abi.CaptureRecord, _, _ []byte) error { return o.fn(e) }
func (o each) lost(uint64) error                                       { return nil }
func (o each) flush() error                                            { return nil }
func (o each) close() error                                            { return nil }
