package control

import (
	"fmt"
	"syscall"

	"urdma/verbs/abi"
)

// handler takes one kind of message; b has been checked against the header's
// length only.
type handler func(x *Session, b []byte, r *reply) error

// typed makes a handler of a function that takes the decoded message.
func typed[T any](fn func(*Session, *T, *reply) error) handler {
	return func(x *Session, b []byte, r *reply) error {
		v, ok := abi.Decode[T](b)
		if !ok {
			return fmt.Errorf("control: message has %d bytes, expected %d: %w", len(b), abi.Size[T](), syscall.EINVAL)
		}
		return fn(x, &v, r)
	}
}

// typedCM is typed for rdma_cm's requests.
func typedCM[T any](fn func(cmSession, *T, *reply) error) handler {
	return typed(func(x *Session, v *T, r *reply) error { return fn(cmSession{x}, v, r) })
}

var handlers = map[abi.Type]handler{
	abi.Hello:            typed((*Session).hello),
	abi.QueryDevice:      typed((*Session).queryDevice),
	abi.OpenDevice:       typed((*Session).openDevice),
	abi.CloseDevice:      typed((*Session).closeDevice),
	abi.AllocPD:          typed((*Session).allocPD),
	abi.DeallocPD:        typed((*Session).deallocPD),
	abi.AddFile:          typed((*Session).addFile),
	abi.RegMR:            typed((*Session).regMR),
	abi.DeregMR:          typed((*Session).deregMR),
	abi.AllocMW:          typed(allocMW),
	abi.AttachMcast:      typed(attachMcast),
	abi.DetachMcast:      typed(detachMcast),
	abi.DeallocMW:        typed(deallocMW),
	abi.CreateChannel:    typed((*Session).createChannel),
	abi.DestroyChannel:   typed((*Session).destroyChannel),
	abi.CreateCQ:         typed((*Session).createCQ),
	abi.ResizeCQ:         typed((*Session).resizeCQ),
	abi.DestroyCQ:        typed((*Session).destroyCQ),
	abi.CreateQP:         typed((*Session).createQP),
	abi.ModifyQP:         typed((*Session).modifyQP),
	abi.QueryQP:          typed((*Session).queryQP),
	abi.DestroyQP:        typed((*Session).destroyQP),
	abi.CreateSRQ:        typed(createSRQ),
	abi.ModifySRQ:        typed(modifySRQ),
	abi.QuerySRQ:         typed(querySRQ),
	abi.DestroySRQ:       typed(destroySRQ),
	abi.OpenXRCD:         typed(openXRCD),
	abi.CloseXRCD:        typed(closeXRCD),
	abi.OpenQP:           typed(openTarget),
	abi.PoolQueues:       typed((*Session).poolQueues),
	abi.CMCreateChannel:  typedCM(cmSession.createChannel),
	abi.CMDestroyChannel: typedCM(cmSession.destroyChannel),
	abi.CMCreateID:       typedCM(cmSession.createID),
	abi.CMDestroyID:      typedCM(cmSession.destroyID),
	abi.CMBind:           typedCM(cmSession.bind),
	abi.CMResolveAddr:    typedCM(cmSession.resolveAddr),
	abi.CMResolveRoute:   typedCM(cmSession.resolveRoute),
	abi.CMListen:         typedCM(cmSession.listen),
	abi.CMConnect:        typedCM(cmSession.connect),
	abi.CMAccept:         typedCM(cmSession.accept),
	abi.CMReject:         typedCM(cmSession.reject),
	abi.CMDisconnect:     typedCM(cmSession.disconnect),
	abi.CMSetOption:      typedCM(cmSession.setOption),
	abi.CMMigrateID:      typedCM(cmSession.migrateID),
	abi.CMWakeChannel:    typedCM(cmSession.wakeChannel),
	abi.Inspect:          typed((*Session).inspect),
	abi.Capture:          typed((*Session).startCapture),
	abi.CaptureStop:      typed((*Session).stopCapture),
}

func (x *Session) dispatch(t abi.Type, b []byte, r *reply) error {
	if t == abi.Batch {
		return x.batch(b, r)
	}
	h := handlers[t]
	if h == nil {
		return fmt.Errorf("control: message type %d is unknown: %w", t, syscall.EOPNOTSUPP)
	}
	return h(x, b, r)
}
