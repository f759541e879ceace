package session

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"urdma/verbs/abi"
)

// Errors that callers test for with errors.Is.
var (
	// ErrNoDaemon: no urdmad listens on any of the sockets tried.
	ErrNoDaemon = errors.New("verbs: no urdmad is running; start one, or name its socket by URDMA_SOCKET")
	// ErrVersion: urdmad speaks another version of the control protocol.
	ErrVersion = errors.New("verbs: urdmad speaks another version of the protocol")
	// ErrGone: the connection to urdmad is lost; it died, or broke the protocol.
	ErrGone = fmt.Errorf("verbs: urdmad is gone: %w", syscall.EIO)
	// ErrClosed: the session was closed.
	ErrClosed = fmt.Errorf("verbs: %w", net.ErrClosed)
)

// refused is what urdmad answered to a request.
func refused(t abi.Type, status int32) error {
	if status < 0 {
		status = -status
	}
	return fmt.Errorf("verbs: %s: %w", RequestName(t), syscall.Errno(status))
}

var requestNames = map[abi.Type]string{
	abi.Hello: "greeting urdmad", abi.QueryDevice: "querying a device", abi.OpenDevice: "opening a device",
	abi.CloseDevice: "closing a device", abi.AllocPD: "allocating a protection domain",
	abi.DeallocPD: "releasing a protection domain", abi.AddFile: "sharing memory",
	abi.RegMR: "registering memory", abi.DeregMR: "deregistering memory",
	abi.CreateChannel: "creating a completion channel", abi.DestroyChannel: "destroying a completion channel",
	abi.CreateCQ: "creating a completion queue", abi.ResizeCQ: "resizing a completion queue",
	abi.DestroyCQ: "destroying a completion queue", abi.CreateQP: "creating a queue pair",
	abi.ModifyQP: "modifying a queue pair", abi.QueryQP: "querying a queue pair",
	abi.CreateSRQ: "creating a shared receive queue", abi.ModifySRQ: "modifying a shared receive queue",
	abi.QuerySRQ: "querying a shared receive queue", abi.DestroySRQ: "destroying a shared receive queue",
	abi.DestroyQP: "destroying a queue pair", abi.CMCreateChannel: "creating an event channel",
	abi.CMCreateID: "creating an id", abi.CMDestroyID: "destroying an id", abi.CMBind: "binding",
	abi.CMResolveAddr: "resolving an address", abi.CMResolveRoute: "resolving a route",
	abi.CMListen: "listening", abi.CMConnect: "connecting", abi.CMAccept: "accepting",
	abi.OpenXRCD: "opening an XRC domain", abi.CloseXRCD: "closing an XRC domain", abi.OpenQP: "opening a queue pair",
	abi.AttachMcast: "attaching to a group", abi.DetachMcast: "detaching from a group",
	abi.AllocMW: "allocating a memory window", abi.DeallocMW: "deallocating a memory window",
	abi.CMReject: "rejecting", abi.CMDisconnect: "disconnecting",
}

// RequestName says what a request is for, in words.
func RequestName(t abi.Type) string {
	if s, ok := requestNames[t]; ok {
		return s
	}
	return fmt.Sprintf("request %d", uint32(t))
}
