// Code generated from urdma_abi.h by urdma/verbs/abi/generate; DO NOT EDIT.

package objects

import (
	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// requests are answered for objects.
var requests = map[abi.Type]control.Request{
	abi.OpenDevice:       control.Answer(openDevice),
	abi.CloseDevice:      control.Answer((*Context).closeDevice),
	abi.AllocPD:          control.Answer((*Context).allocPD),
	abi.DeallocPD:        control.Answer((*PD).deallocPD),
	abi.AddFile:          control.Answer(addFile),
	abi.RegMR:            control.Answer((*PD).regMR),
	abi.DeregMR:          control.Answer((*MR).deregMR),
	abi.CreateChannel:    control.Answer((*Context).createChannel),
	abi.DestroyChannel:   control.Answer((*Channel).destroyChannel),
	abi.CreateCQ:         control.Answer((*Context).createCQ),
	abi.ResizeCQ:         control.Answer((*CQ).resizeCQ),
	abi.DestroyCQ:        control.Answer((*CQ).destroyCQ),
	abi.CreateQP:         control.Answer(createQP),
	abi.ModifyQP:         control.Answer((*QP).modifyQP),
	abi.QueryQP:          control.Answer((*QP).queryQP),
	abi.DestroyQP:        control.Answer((*QP).destroyQP),
	abi.CreateSRQ:        control.Answer((*PD).createSRQ),
	abi.ModifySRQ:        control.Answer((*SRQ).modifySRQ),
	abi.QuerySRQ:         control.Answer((*SRQ).querySRQ),
	abi.DestroySRQ:       control.Answer((*SRQ).destroySRQ),
	abi.OpenXRCD:         control.Answer((*Context).openXRCD),
	abi.CloseXRCD:        control.Answer((*XRCD).closeXRCD),
	abi.OpenQP:           control.Answer((*XRCD).openQP),
	abi.ResizeSRQ:        control.Answer((*SRQ).resizeSRQ),
	abi.CMCreateChannel:  control.Answer(createChannel),
	abi.CMDestroyChannel: control.Answer((*EventChannel).destroyChannel),
	abi.CMCreateID:       control.Answer((*EventChannel).createID),
	abi.CMDestroyID:      control.Answer((*ID).destroyID),
	abi.CMBind:           control.Answer((*ID).bind),
	abi.CMResolveAddr:    control.Answer((*ID).resolveAddr),
	abi.CMResolveRoute:   control.Answer((*ID).resolveRoute),
	abi.CMListen:         control.Answer((*ID).listen),
	abi.CMConnect:        control.Answer((*ID).connect),
	abi.CMAccept:         control.Answer((*ID).accept),
	abi.CMReject:         control.Answer((*ID).reject),
	abi.CMDisconnect:     control.Answer((*ID).disconnect),
	abi.CMSetOption:      control.Answer((*ID).setOption),
	abi.CMMigrateID:      control.Answer((*ID).migrateID),
	abi.CMWakeChannel:    control.Answer((*EventChannel).wakeChannel),
	abi.AllocMW:          control.Answer((*PD).allocMW),
	abi.DeallocMW:        control.Answer((*MW).deallocMW),
	abi.AttachMcast:      control.Answer((*QP).attachMcast),
	abi.DetachMcast:      control.Answer((*QP).detachMcast),
	abi.CreateFlow:       control.Answer((*QP).createFlow),
	abi.DestroyFlow:      control.Answer((*Flow).destroyFlow),
}
