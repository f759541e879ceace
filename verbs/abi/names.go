package abi

import "fmt"

var typeNames = map[Type]string{
	Hello: "HELLO", QueryDevice: "QUERY_DEVICE", OpenDevice: "OPEN_DEVICE", CloseDevice: "CLOSE_DEVICE", AllocPD: "ALLOC_PD",
	DeallocPD: "DEALLOC_PD", AddFile: "ADD_FILE", RegMR: "REG_MR", DeregMR: "DEREG_MR", CreateChannel: "CREATE_CHANNEL",
	DestroyChannel: "DESTROY_CHANNEL", CreateCQ: "CREATE_CQ", ResizeCQ: "RESIZE_CQ", DestroyCQ: "DESTROY_CQ",
	CreateQP: "CREATE_QP", ModifyQP: "MODIFY_QP", QueryQP: "QUERY_QP", DestroyQP: "DESTROY_QP",
	CreateSRQ: "CREATE_SRQ", ModifySRQ: "MODIFY_SRQ", QuerySRQ: "QUERY_SRQ", DestroySRQ: "DESTROY_SRQ", OpenXRCD: "OPEN_XRCD", CloseXRCD: "CLOSE_XRCD", OpenQP: "OPEN_QP", PoolQueues: "POOL_QUEUES", Batch: "BATCH",
	CMCreateChannel: "CM_CREATE_CHANNEL", CMDestroyChannel: "CM_DESTROY_CHANNEL", CMCreateID: "CM_CREATE_ID", CMDestroyID: "CM_DESTROY_ID",
	CMBind: "CM_BIND", CMResolveAddr: "CM_RESOLVE_ADDR", CMResolveRoute: "CM_RESOLVE_ROUTE", CMListen: "CM_LISTEN",
	CMConnect: "CM_CONNECT", CMAccept: "CM_ACCEPT", CMReject: "CM_REJECT", CMDisconnect: "CM_DISCONNECT",
	CMSetOption: "CM_SET_OPTION", CMMigrateID: "CM_MIGRATE_ID", CMWakeChannel: "CM_WAKE_CHANNEL", AllocMW: "ALLOC_MW", AttachMcast: "ATTACH_MCAST", DetachMcast: "DETACH_MCAST", DeallocMW: "DEALLOC_MW",
	Inspect: "INSPECT", Capture: "CAPTURE", CaptureStop: "CAPTURE_STOP",
}

// String is the name that urdma_abi.h has for the message, without its prefix.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("message %d", uint32(t))
}
