// Package objects has the objects of clients: each file has one kind, or two that go together, with the
// methods that answer the requests about it. context.go has open devices, protection domains and shared
// memory files; memory.go memory regions and windows; queue.go completion channels and
// queues; srq.go XRC domains and shared receive queues; pair.go queue pairs; id.go rdma_cm's
// channels and ids; flow.go flows.
//
// A file knows only those of the objects that its own are made of. dispatch_gen.go maps the requests
// to the methods; package control looks up handles and removes the objects of a client that has
// ended.
package objects

import "urdma/urdmad/control"

// Attach makes a server answer the requests about objects. It must be called before Serve.
func Attach(s *control.Server) {
	s.Attach(&control.Hooks{Left: func(x *control.Session) (more bool) { return x.Worker().CM.Gone(Owner{x}) }}, requests)
}
