package reason

// A work request that was found wrong here, before anything of it was sent, or a receive.
const (
	LocalNoRegion    Number = 0x0401 // the lkey names nothing
	LocalDomain      Number = 0x0402 // the region is of another protection domain
	LocalBounds      Number = 0x0403 // the memory is not inside the region
	LocalNoRight     Number = 0x0404 // the region lacks IBV_ACCESS_LOCAL_WRITE
	LocalWindow      Number = 0x0405 // the lkey is a memory window's rkey
	LocalRevoked     Number = 0x0406 // the region was deregistered before the work was done
	LocalUnreachable Number = 0x0407 // urdmad could not touch the memory

	Operation      Number = 0x0410 // the queue pair's type does not have it, or urdma does not
	TooManySGEs    Number = 0x0411
	InlineTooLong  Number = 0x0412
	MessageTooLong Number = 0x0413
	AtomicTooShort Number = 0x0414
	PeerTakesNone  Number = 0x0415 // immediate data, atomics
	NoReads        Number = 0x0416 // max_rd_atomic of 0
	WrongWindow    Number = 0x0417 // ibv_bind_mw, or local invalidation
	DatagramSize   Number = 0x0418
	Destination    Number = 0x0419
)

// What ended a queue pair, no work request being to blame.
const (
	NotReady    Number = 0x0501 // RNR
	Silent      Number = 0x0502 // no answer
	SendIndex   Number = 0x0503 // of the send queue's ring
	Overrun     Number = 0x0504 // of a completion queue
	Memory      Number = 0x0505 // of the client could not be touched
	ByProgram   Number = 0x0506 // ibv_modify_qp
	Left        Number = 0x0507 // rdma_disconnect here, or the queue pair was destroyed
	PeerLeft    Number = 0x0508 // the peer disconnected
	Reset       Number = 0x0509 // the TCP connection was lost
	PeerRefused Number = 0x050a // the peer's Terminate without a cause that is known
	ByUser      Number = 0x050b // urdma end
	Injected    Number = 0x050c // urdma inject
	NAKInvalid  Number = 0x050d // of RoCEv2: invalid request
	NAKAccess   Number = 0x050e // of RoCEv2: remote access error
	NAKFailed   Number = 0x050f // of RoCEv2: remote operational error
	AddressGone Number = 0x0510 // from our port
)

// What became of a connection of rdma_cm that did not come to be.
const (
	Rejected    Number = 0x0581 // by the peer's program
	Unreachable Number = 0x0582 // no answer to the request
	NoAddress   Number = 0x0583 // the address was not resolved
	Aborted     Number = 0x0584 // after rdma_accept
	NoListener  Number = 0x0585
)
