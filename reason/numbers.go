package reason

// A work request or a receive failed a check here; nothing of it was sent.
const (
	LocalNoRegion    Number = 0x0401 // the lkey names no region
	LocalDomain      Number = 0x0402 // the region belongs to another protection domain
	LocalBounds      Number = 0x0403 // the memory is not inside the region
	LocalNoRight     Number = 0x0404 // the region lacks IBV_ACCESS_LOCAL_WRITE
	LocalWindow      Number = 0x0405 // the lkey is a memory window's rkey
	LocalRevoked     Number = 0x0406 // the region was deregistered before the work was done
	LocalUnreachable Number = 0x0407 // urdmad could not access the memory

	Operation      Number = 0x0410 // not supported by the queue pair's type, or by urdma
	TooManySGEs    Number = 0x0411
	InlineTooLong  Number = 0x0412
	MessageTooLong Number = 0x0413
	AtomicTooShort Number = 0x0414
	PeerTakesNone  Number = 0x0415 // the peer does not support immediate data or atomics
	NoReads        Number = 0x0416 // max_rd_atomic of 0
	WrongWindow    Number = 0x0417 // ibv_bind_mw, or local invalidation
	DatagramSize   Number = 0x0418
	Destination    Number = 0x0419
	Frame          Number = 0x041a // a raw packet that the port's configuration does not allow
)

// Reasons for the end of a queue pair that no work request caused.
const (
	NotReady    Number = 0x0501 // RNR
	Silent      Number = 0x0502 // the peer does not answer
	SendIndex   Number = 0x0503 // the index of the send queue's ring is invalid
	Overrun     Number = 0x0504 // a completion queue is full
	Memory      Number = 0x0505 // memory of the client could not be accessed
	ByProgram   Number = 0x0506 // ibv_modify_qp
	Left        Number = 0x0507 // rdma_disconnect, or the queue pair was destroyed
	PeerLeft    Number = 0x0508 // the peer disconnected
	Reset       Number = 0x0509 // the TCP connection was lost
	PeerRefused Number = 0x050a // a Terminate of the peer without a known cause
	ByUser      Number = 0x050b // urdma end
	Injected    Number = 0x050c // urdma inject
	NAKInvalid  Number = 0x050d // RoCEv2: invalid request
	NAKAccess   Number = 0x050e // RoCEv2: remote access error
	NAKFailed   Number = 0x050f // RoCEv2: remote operational error
	AddressGone Number = 0x0510 // our port lost the address
	Bug         Number = 0x0511 // a panic of urdmad while it served the client
)

// Reasons why rdma_cm did not establish a connection.
const (
	Rejected    Number = 0x0581 // the peer's program rejected it
	Unreachable Number = 0x0582 // no answer to the request
	NoAddress   Number = 0x0583 // the address was not resolved
	Aborted     Number = 0x0584 // after rdma_accept
	NoListener  Number = 0x0585
)
