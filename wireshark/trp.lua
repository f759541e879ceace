-- Wireshark dissector for TRP, the reliability layer that urdma puts between
-- UDP and iWARP (docs/WIRE.md). It reads TRP itself and hands the DDP segment
-- behind it to Wireshark's own reader, so that iwarp_ddp.* and iwarp_rdma.*
-- can be filtered on as well.
--
-- To install it, copy this file into Wireshark's folder of personal Lua plugins
-- (Help > About Wireshark > Folders) and restart, or press Ctrl+Shift+L. Once:
--     tshark -X lua_script:trp.lua -r FILE.pcapng
-- It needs Wireshark 4.0 or later.
--
-- TRP has no port number of its own. A connection is recognized by its
-- handshake, or in a capture without one by its first segment: DDP and RDMAP
-- leave little to chance. Empty packets count from then on; in a capture of
-- `urdma capture`, whose interface says so, all of them do. Where another
-- protocol owns the port number, or only acknowledgements were captured, there
-- is "Decode as… TRP".
--
-- PSN and ACK in the Info column count from the connection's first segment, or
-- from the first that was captured; trp.psn and trp.ack are those on the wire.
--
-- What Wireshark's reader (4.0 to 4.4 at least) makes of our segments:
--   Immediate Data   DDP header only; the data is trp.imm.data
--   atomic Swap      its operands appear as Compare Data and Mask; trp.atomic.*
--                    has all three atomics right
--   Terminate        the size of the refused DDP header is guessed from the
--                    error type instead of read; trp.term.* reads it
--   Send             one with a solicited event is reassembled in the order of
--                    the capture, so it is garbled if its segments overtook each
--                    other; data sent again is kept from it. So are Sends without
--                    one that are shorter than 16 bytes or longer than a segment:
--                    its reader for RPC over RDMA, which it asks about them,
--                    calls the former malformed and fails on the latter
-- trp.ddp.* names what every DDP header says, cut packets included.

if Dissector.get("trp") then return end -- installed, and named on the command line as well

local trp = Proto("trp", "urdma TRP")

---------------------------------------------------------------- the protocol

local BASE, FULL = 10, 16 -- bytes of header: of the handshake, of all else
local DATA, REQUEST, ACCEPT, REJECT, FIN, SACK, RETRY = 0, 1, 2, 3, 4, 5, 7
local DATAGRAM, UC, UNCONNECTED_PORT = 6, 8, 30034 -- docs/WIRE.md chapters 10 and 13
local RESOLVE, RESOLVED = 9, 10 -- likewise, chapter 10
local UNCONNECTED = { [DATAGRAM] = 30, [UC] = 26 } -- bytes of header
local UC_WRITE = 12 -- more, of an RDMA Write
local MAX_PRIVATE = 512
local CONNECT = 6 -- private-data length, IRD, ORD
local MAGIC, VERSION, BLOCK, LONG_BLOCK, NUMBER_BLOCK = 0x7552, 1, 20, 32, 36
local MAX_WINDOW = 4095 -- of 12 bits of credits
local WIDE_WINDOW = 1048575 -- of 20
local RUN, MAX_RUNS = 8, 32

local packet_names = {
  [DATA] = "Data", [REQUEST] = "Request", [ACCEPT] = "Accept",
  [REJECT] = "Reject", [FIN] = "Fin", [SACK] = "Sack",
  [RETRY] = "Retry", [DATAGRAM] = "Datagram", [UC] = "UC",
  [RESOLVE] = "Resolve", [RESOLVED] = "Resolved",
}

-- RDMAP opcodes (RFC 5040, RFC 7306), with the properties of their segments: the queue of an untagged one, whether
-- the message is one segment, and the exact or least length of its body.
local TERMINATE = 7
local operations = {
  [0] = { name = "RDMA Write", tagged = true },
  [1] = { name = "RDMA Read Request", queue = 1, single = true, body = 28 },
  [2] = { name = "RDMA Read Response", tagged = true },
  [3] = { name = "Send", queue = 0 },
  [4] = { name = "Send with Invalidate", queue = 0, invalidates = true },
  [5] = { name = "Send with Solicited Event", queue = 0 },
  [6] = { name = "Send with Solicited Event and Invalidate", queue = 0, invalidates = true },
  [7] = { name = "Terminate", queue = 2, single = true, least = 4 },
  [8] = { name = "Immediate Data", queue = 0, single = true, body = 8 },
  [9] = { name = "Immediate Data with Solicited Event", queue = 0, single = true, body = 8 },
  [10] = { name = "Atomic Request", queue = 1, single = true, body = 52 },
  [11] = { name = "Atomic Response", queue = 3, single = true, body = 12 },
}
local operation_names = {}
for opcode, operation in pairs(operations) do operation_names[opcode] = operation.name end

local TAGGED, UNTAGGED = 14, 18 -- bytes of DDP header
local READ_REQUEST = 28

local atomic_names = { [0] = "FetchAdd", [1] = "Swap", [2] = "CmpSwap" }

-- Layer, type and code of a Terminate as one number, as on the wire.
local causes = {
  [0x0000] = "RDMAP local catastrophic error",
  [0x0100] = "remote protection: invalid STag",
  [0x0101] = "remote protection: base or bounds violation",
  [0x0102] = "remote protection: access rights violation",
  [0x0103] = "remote protection: STag not associated with this stream",
  [0x0104] = "remote protection: tagged offset wraps",
  [0x0109] = "remote protection: STag cannot be invalidated",
  [0x01ff] = "remote protection: unspecified",
  [0x0205] = "remote operation: invalid RDMAP version",
  [0x0206] = "remote operation: unexpected opcode",
  [0x0207] = "remote operation: catastrophic to this stream",
  [0x0208] = "remote operation: catastrophic, global",
  [0x0209] = "remote operation: STag cannot be invalidated",
  [0x02ff] = "remote operation: unspecified",
  [0x1000] = "DDP local catastrophic error",
  [0x1100] = "tagged buffer: invalid STag",
  [0x1101] = "tagged buffer: base or bounds violation",
  [0x1102] = "tagged buffer: STag not associated with this stream",
  [0x1103] = "tagged buffer: tagged offset wraps",
  [0x1104] = "tagged buffer: invalid DDP version",
  [0x1201] = "untagged buffer: invalid queue number",
  [0x1202] = "untagged buffer: no buffer posted for the message",
  [0x1203] = "untagged buffer: message number out of range",
  [0x1204] = "untagged buffer: invalid message offset",
  [0x1205] = "untagged buffer: message too long for the buffer",
  [0x1206] = "untagged buffer: invalid DDP version",
  [0x2001] = "MPA: connection lost",
  [0x2002] = "MPA: CRC error",
  [0x2003] = "MPA: marker and length mismatch",
  [0x2004] = "MPA: invalid request or reply frame",
  [0x2005] = "MPA: local catastrophic error",
  [0x2006] = "MPA: insufficient IRD",
  [0x2007] = "MPA: no matching RTR",
}

------------------------------------------------------------------ the fields

-- The fields of a DDP header; the refused header in a Terminate has its own.
local function ddp_fields(prefix)
  return {
    tagged = ProtoField.bool(prefix .. ".tagged", "Tagged", 8, nil, 0x80, "The segment names the buffer it goes to"),
    last = ProtoField.bool(prefix .. ".last", "Last", 8, nil, 0x40, "Last segment of the message"),
    op = ProtoField.uint8(prefix .. ".op", "Opcode", base.DEC, operation_names, 0x0f, "RDMAP opcode (RFC 5040, RFC 7306)"),
    stag = ProtoField.uint32(prefix .. ".stag", "STag", base.HEX, nil, nil, "Buffer of a tagged segment, or STag to invalidate"),
    to = ProtoField.uint64(prefix .. ".to", "TO", base.HEX, nil, nil, "Tagged offset in the buffer"),
    qn = ProtoField.uint32(prefix .. ".qn", "QN", base.DEC, nil, nil, "Untagged queue number"),
    msn = ProtoField.uint32(prefix .. ".msn", "MSN", base.DEC, nil, nil, "Message number in the queue"),
    mo = ProtoField.uint32(prefix .. ".mo", "MO", base.DEC, nil, nil, "Offset in the message, bytes"),
  }
end

local fields = {
  psn = ProtoField.uint32("trp.psn", "PSN", base.DEC, nil, nil, "Number of this segment, or of the next if there is none here"),
  psn_rel = ProtoField.int32("trp.psn_rel", "Relative PSN", base.DEC, nil, nil, "PSN counted from the connection's first segment"),
  ack = ProtoField.uint32("trp.ack", "ACK", base.DEC, nil, nil, "Next PSN expected from the peer"),
  ack_rel = ProtoField.int32("trp.ack_rel", "Relative ACK", base.DEC, nil, nil, "ACK counted from the connection's first segment"),
  op = ProtoField.uint16("trp.op", "Packet", base.DEC, packet_names, 0xf000, "TRP opcode"),
  credits = ProtoField.uint32("trp.credits", "Credits", base.DEC, nil, nil, "Segments past ACK that the sender can hold; behind the handshake with the upper 8 bits that the flags hold"),
  flags = ProtoField.uint16("trp.flags", "Flags", base.HEX, nil, nil, "Flags"),
  flags_ar = ProtoField.bool("trp.flags.ar", "Acknowledgement requested", 16, nil, 0x8000, "Acknowledge without delay (AR)"),
  flags_reserved = ProtoField.uint16("trp.flags.reserved", "Reserved", base.HEX, nil, 0x7f00, "Sent as 0"),
  flags_credits = ProtoField.uint16("trp.flags.credits", "Upper credits", base.DEC, nil, 0x00ff, "Credits above their 12 bits in the base header, in units of 4096"),
  cookie = ProtoField.uint32("trp.cookie", "Cookie", base.HEX, nil, nil, "The number that the receiver chose in its extension block"),

  private_len = ProtoField.uint16("trp.connect.private_len", "Private-data length", base.DEC, nil, nil, "Bytes, at most 512"),
  ird = ProtoField.uint16("trp.connect.ird", "IRD", base.DEC, nil, nil, "RDMA Reads and atomics that the sender serves at once"),
  ord = ProtoField.uint16("trp.connect.ord", "ORD", base.DEC, nil, nil, "RDMA Reads and atomics that the sender wants to have open"),
  private = ProtoField.bytes("trp.connect.private", "Private data", base.NONE, "The program's own"),
  block = ProtoField.none("trp.connect.ext", "Extension block", "What its sender offers"),
  magic = ProtoField.uint16("trp.connect.ext.magic", "Magic", base.HEX, nil, nil, "0x7552"),
  version = ProtoField.uint8("trp.connect.ext.version", "Version", base.DEC, nil, nil, "1"),
  block_len = ProtoField.uint8("trp.connect.ext.len", "Length", base.DEC, nil, nil, "Bytes of the whole block"),
  block_cookie = ProtoField.uint32("trp.connect.ext.cookie", "Cookie", base.HEX, nil, nil, "What later packets to the sender of the block carry"),
  qpn = ProtoField.uint32("trp.connect.ext.qpn", "QPN", base.HEX, nil, nil, "Queue pair number of the sender"),
  max_segment = ProtoField.uint16("trp.connect.ext.max_segment", "Maximum segment", base.DEC, nil, nil, "Bytes of DDP segment that the sender takes, header included"),
  window = ProtoField.uint16("trp.connect.ext.window", "Receive window", base.DEC, nil, nil, "Segments that the sender can hold from the start"),
  capabilities = ProtoField.uint32("trp.connect.ext.capabilities", "Capabilities", base.HEX, nil, nil, "4: the sender's queue pair is an XRC target"),
  target = ProtoField.uint32("trp.connect.ext.target", "Target QPN", base.HEX, nil, nil, "Queue pair that is to be connected by number; 0: by rdma_cm"),
  echo = ProtoField.uint32("trp.connect.ext.echo", "Echo", base.HEX, nil, nil, "The peer's cookie as last heard, or the token of a retry"),
  min_rnr_timer = ProtoField.uint8("trp.connect.ext.min_rnr_timer", "min_rnr_timer", base.DEC, nil, nil, "Of the sender's queue pair"),
  path_mtu = ProtoField.uint8("trp.connect.ext.path_mtu", "path_mtu", base.DEC, nil, nil, "Of the sender's queue pair, enum ibv_mtu"),
  rq_psn = ProtoField.uint24("trp.connect.ext.rq_psn", "rq_psn", base.HEX, nil, nil, "Of the sender's queue pair"),
  block_rest = ProtoField.bytes("trp.connect.ext.rest", "Rest of the block", base.NONE, "What a longer block of version 1 has behind the known fields"),
  trailer = ProtoField.bytes("trp.trailer", "Ignored", base.NONE, "Bytes that mean nothing and are ignored"),

  run = ProtoField.none("trp.sack.run", "Run", "Segments that arrived past a gap"),
  run_first = ProtoField.uint32("trp.sack.first", "First", base.DEC, nil, nil, "First PSN of the run"),
  run_end = ProtoField.uint32("trp.sack.end", "End", base.DEC, nil, nil, "One past the last PSN of the run"),
  run_count = ProtoField.uint32("trp.sack.count", "Runs", base.DEC, nil, nil, "Runs in this sack"),

  segment = ProtoField.none("trp.ddp", "DDP segment", "What the DDP and RDMAP headers say"),
  payload_len = ProtoField.uint32("trp.ddp.len", "Payload length", base.DEC, nil, nil, "Bytes behind the DDP header"),
  imm = ProtoField.bytes("trp.imm", "Immediate data", base.NONE, "64 bits (RFC 7306 section 6)"),
  imm_data = ProtoField.uint32("trp.imm.data", "imm_data", base.HEX, nil, nil, "What verbs call imm_data: the first 32 bits"),

  atomic = ProtoField.none("trp.atomic", "Atomic", "RFC 7306 section 5.2"),
  atomic_op = ProtoField.uint32("trp.atomic.op", "Operation", base.DEC, atomic_names, 0x0000000f, "Atomic opcode"),
  atomic_id = ProtoField.uint32("trp.atomic.id", "Request identifier", base.DEC, nil, nil, "Names the request in its response"),
  atomic_stag = ProtoField.uint32("trp.atomic.stag", "STag", base.HEX, nil, nil, "Remote buffer"),
  atomic_to = ProtoField.uint64("trp.atomic.to", "TO", base.HEX, nil, nil, "Tagged offset in the remote buffer"),
  atomic_data = ProtoField.uint64("trp.atomic.data", "Data", base.HEX, nil, nil, "What is added or swapped in"),
  atomic_mask = ProtoField.uint64("trp.atomic.mask", "Mask", base.HEX, nil, nil, "Its field boundaries or bits"),
  atomic_compare = ProtoField.uint64("trp.atomic.compare", "Compare", base.HEX, nil, nil, "CmpSwap: what the value is compared with"),
  atomic_compare_mask = ProtoField.uint64("trp.atomic.compare_mask", "Compare mask", base.HEX, nil, nil, "CmpSwap: the bits that are compared"),
  atomic_original = ProtoField.uint64("trp.atomic.original", "Original value", base.HEX, nil, nil, "What was there before"),

  term = ProtoField.none("trp.term", "Terminate", "RFC 5040 section 4.8"),
  term_code = ProtoField.uint16("trp.term.code", "Code", base.HEX, nil, nil, "Layer, type and code as one number"),
  term_layer = ProtoField.uint16("trp.term.layer", "Layer", base.DEC, { [0] = "RDMAP", [1] = "DDP", [2] = "MPA" }, 0xf000, "Layer that refused the segment"),
  term_type = ProtoField.uint16("trp.term.type", "Error type", base.DEC, nil, 0x0f00, "Meaning depends on the layer"),
  term_error = ProtoField.uint16("trp.term.error", "Error code", base.HEX, nil, 0x00ff, "Meaning depends on layer and type"),
  term_cause = ProtoField.string("trp.term.cause", "Cause", base.ASCII, "What layer, type and code mean"),
  term_m = ProtoField.bool("trp.term.m", "Segment length valid (M)", 8, nil, 0x80, "The segment length is valid"),
  term_d = ProtoField.bool("trp.term.d", "DDP header included (D)", 8, nil, 0x40, "The refused segment's DDP header follows"),
  term_r = ProtoField.bool("trp.term.r", "RDMAP header included (R)", 8, nil, 0x20, "The refused Read Request follows"),
  term_len = ProtoField.uint16("trp.term.seglen", "Segment length", base.DEC, nil, nil, "Bytes of the refused segment, DDP header included"),
  term_read = ProtoField.none("trp.term.read", "Refused Read Request", "Body of the refused Read Request"),
  read_sink_stag = ProtoField.uint32("trp.term.read.sink_stag", "Sink STag", base.HEX),
  read_sink_to = ProtoField.uint64("trp.term.read.sink_to", "Sink TO", base.HEX),
  read_len = ProtoField.uint32("trp.term.read.len", "Length", base.DEC),
  read_src_stag = ProtoField.uint32("trp.term.read.src_stag", "Source STag", base.HEX),
  read_src_to = ProtoField.uint64("trp.term.read.src_to", "Source TO", base.HEX),
  refused = ProtoField.none("trp.term.ddp", "Refused DDP header", "Header of the refused segment"),

  dst_qpn = ProtoField.uint32("trp.dst_qpn", "Destination QPN", base.HEX, nil, nil, "Queue pair that the message goes to"),
  src_qpn = ProtoField.uint32("trp.src_qpn", "Source QPN", base.HEX, nil, nil, "Queue pair that it comes from"),
  qkey = ProtoField.uint32("trp.qkey", "Q_Key", base.HEX, nil, nil, "Must be the destination's"),
  has_immediate = ProtoField.bool("trp.message.immediate", "Immediate data valid", base.NONE),
  solicited = ProtoField.bool("trp.message.solicited", "Solicited event", base.NONE),
  first = ProtoField.bool("trp.uc.first", "First", base.NONE, nil, nil, "First packet of its message"),
  last = ProtoField.bool("trp.uc.last", "Last", base.NONE, nil, nil, "Last packet of its message"),
  write = ProtoField.bool("trp.uc.write", "RDMA Write", base.NONE, nil, nil, "Else a Send"),
  uc_stag = ProtoField.uint32("trp.uc.stag", "STag", base.HEX, nil, nil, "Remote buffer"),
  uc_to = ProtoField.uint64("trp.uc.to", "TO", base.HEX, nil, nil, "Where this packet's payload goes in it"),
  message_imm = ProtoField.bytes("trp.message.imm", "Immediate data", base.NONE),
  message = ProtoField.bytes("trp.message.payload", "Payload", base.NONE),

  analysis = ProtoField.none("trp.analysis", "Analysis", "What follows from other packets"),
  acked_in = ProtoField.framenum("trp.analysis.acked_in", "Acknowledged in", base.NONE, frametype.ACK, 0, "The packet that acknowledged this segment"),
  acks = ProtoField.framenum("trp.analysis.acks", "Newest segment acknowledged", base.NONE, frametype.ACK, 0, "The newest segment that this packet acknowledges"),
  ack_rtt = ProtoField.relative_time("trp.analysis.ack_rtt", "Round trip time", "From that segment to this acknowledgement; not where it was sent twice"),
  resent = ProtoField.framenum("trp.analysis.retransmission_of", "Retransmission of", base.NONE, frametype.NONE, 0, "The packet that carried the same PSN before"),
  request_in = ProtoField.framenum("trp.analysis.request_in", "Answer to", base.NONE, frametype.REQUEST, 0, "The request that this packet answers"),
  answer_in = ProtoField.framenum("trp.analysis.answer_in", "Answered in", base.NONE, frametype.RESPONSE, 0, "The accept or reject that answers this request"),
  dup_ack = ProtoField.uint32("trp.analysis.dup_ack", "Duplicate ack number", base.DEC, nil, nil, "How often this acknowledgement was repeated"),
}
local ddp = ddp_fields("trp.ddp")
local refused_ddp = ddp_fields("trp.term.ddp")

local experts = {
  malformed = ProtoExpert.new("trp.malformed", "Malformed: its receiver drops it", expert.group.MALFORMED, expert.severity.ERROR),
  refused = ProtoExpert.new("trp.refused", "Its receiver answers with a Terminate", expert.group.PROTOCOL, expert.severity.ERROR),
  cut = ProtoExpert.new("trp.cut", "Cut short by the capture", expert.group.UNDECODED, expert.severity.NOTE),
  reader = ProtoExpert.new("trp.reader", "Wireshark's own reader is mistaken here", expert.group.UNDECODED, expert.severity.CHAT),
  terminate = ProtoExpert.new("trp.terminate", "Terminate", expert.group.RESPONSE_CODE, expert.severity.WARN),
  reject = ProtoExpert.new("trp.reject", "The connection, or the question, is refused", expert.group.RESPONSE_CODE, expert.severity.NOTE),
  cookie = ProtoExpert.new("trp.analysis.wrong_cookie", "Not the cookie that its receiver chose: dropped", expert.group.SECURITY, expert.severity.WARN),
  retransmission = ProtoExpert.new("trp.analysis.retransmission", "Retransmission", expert.group.SEQUENCE, expert.severity.NOTE),
  out_of_order = ProtoExpert.new("trp.analysis.out_of_order", "Out of order: overtaken, or lost before the capture and sent again", expert.group.SEQUENCE, expert.severity.NOTE),
  gap = ProtoExpert.new("trp.analysis.gap", "Segments before this one were not captured", expert.group.SEQUENCE, expert.severity.NOTE),
  duplicate = ProtoExpert.new("trp.analysis.duplicate_ack", "Duplicate ack", expert.group.SEQUENCE, expert.severity.NOTE),
  closed = ProtoExpert.new("trp.analysis.zero_credits", "No credits: the receiver holds the sender up", expert.group.SEQUENCE, expert.severity.NOTE),
  late = ProtoExpert.new("trp.analysis.after_end", "Segment behind its sender's Terminate or fin", expert.group.SEQUENCE, expert.severity.WARN),
}

trp.fields = {}
for _, set in ipairs { fields, ddp, refused_ddp } do
  for _, field in pairs(set) do table.insert(trp.fields, field) end
end
trp.experts = {}
for _, info in pairs(experts) do table.insert(trp.experts, info) end

---------------------------------------------------------------- safe reading

-- Packets may be cut at any byte, by their sender or by the capture. Only these functions read a packet; missing
-- bytes give nil.

local function has(tvb, offset, length)
  return offset + length <= tvb:captured_len()
end

local function bits(tvb, offset, first, count)
  local bytes = math.floor((first + count + 7) / 8)
  return has(tvb, offset, bytes) and tvb:range(offset, bytes):bitfield(first, count) or nil
end

local function u8(tvb, offset) return bits(tvb, offset, 0, 8) end
local function u16(tvb, offset) return bits(tvb, offset, 0, 16) end
local function u32(tvb, offset) return bits(tvb, offset, 0, 32) end

-- A 64-bit number as text: Lua 5.2 has none.
local function hex64(tvb, offset)
  if not has(tvb, offset, 8) then return "?" end
  return "0x" .. (tvb:range(offset, 8):bytes():tohex(true):gsub("^0+(%x)", "%1"))
end

local function hex32(n) return n and string.format("0x%08x", n) or "?" end
local function decimal(n) return n and string.format("%d", n) or "?" end

-- Whether fields are requested. While Wireshark loads a file they are not, and making them takes most of the time;
-- then the parent replaces the fields that are not made.
local wanted

-- Adds the field if its bytes are there.
local function add(tree, field, tvb, offset, length)
  if not has(tvb, offset, length) then return nil end
  return wanted and tree:add(field, tvb:range(offset, length)) or tree
end

-- Adds a field whose value is not completely in its bytes.
local function add_value(tree, field, range, value)
  if wanted then tree:add(field, range, value) end
end

-- Adds the existing part of a range of bytes.
local function add_rest(tree, field, tvb, offset, length)
  length = math.min(length, tvb:captured_len() - offset)
  if length <= 0 then return nil end
  return wanted and tree:add(field, tvb:range(offset, length)) or tree
end

-- Adds a value that is in no byte of the packet.
local function add_generated(tree, field, ...)
  if wanted then tree:add(field, ...):set_generated() end
end

-------------------------------------------------------------- serial numbers

local WRAP = 4294967296

-- a - b as a signed number (RFC 1982).
local function distance(a, b)
  local d = (a - b) % WRAP
  return d >= WRAP / 2 and d - WRAP or d
end

local function next_after(psn) return (psn + 1) % WRAP end

--------------------------------------------------------------------- parsing

-- The first ten bytes, or nil.
local function read_base(tvb)
  if not has(tvb, 0, BASE) then return nil end
  return { psn = u32(tvb, 0), ack = u32(tvb, 4), op = bits(tvb, 8, 0, 4), credits = bits(tvb, 8, 4, 12) }
end

local function is_handshake(op) return op >= REQUEST and op <= REJECT or op == RETRY or op == RESOLVE or op == RESOLVED end

-- Whether a handshake packet is one that needs an answer.
local function asks(op) return op == REQUEST or op == RESOLVE end

-- The rest of the header, and the position of the body. body_len is the length as sent; the capture may have less.
local function read_rest(packet, tvb)
  local full = not is_handshake(packet.op)
  packet.body = full and FULL or BASE
  packet.credits = bits(tvb, 8, 4, 12) + (full and 4096 * (bits(tvb, 10, 8, 8) or 0) or 0)
  packet.body_len = tvb:reported_len() - packet.body
  if full then
    packet.ar = bits(tvb, 10, 0, 1) == 1
    packet.cookie = u32(tvb, 12)
  end
  packet.segment = packet.op == DATA and packet.body_len > 0
end

-- A DDP header, or nil if the capture lacks a part of it.
local function read_ddp(tvb, offset)
  local tagged = bits(tvb, offset, 0, 1) == 1
  local d = { offset = offset, tagged = tagged, len = tagged and TAGGED or UNTAGGED }
  if not has(tvb, offset, d.len) then return nil end
  d.last = bits(tvb, offset, 1, 1) == 1
  d.control = bits(tvb, offset, 2, 10) -- DDP reserved and version, RDMAP version and reserved
  d.op = bits(tvb, offset, 12, 4)
  d.operation = operations[d.op]
  d.stag = u32(tvb, offset + 2)
  if not tagged then
    d.qn, d.msn, d.mo = u32(tvb, offset + 6), u32(tvb, offset + 10), u32(tvb, offset + 14)
  end
  return d
end

-- Reads the extension block at the offset into c. A block that the capture has cut is distinguished from a wrong one.
local function read_block(c, tvb, offset, room)
  c.cut = room >= BLOCK and not has(tvb, offset, BLOCK)
  if room < 4 or u16(tvb, offset) ~= MAGIC or u8(tvb, offset + 2) ~= VERSION then return end
  c.block_len = u8(tvb, offset + 3)
  if not c.block_len then return end
  if c.block_len < BLOCK or c.block_len > room then
    c.wrong = "extension block shorter than 20 bytes or beyond the packet"
    return
  end
  c.ext = {
    cookie = u32(tvb, offset + 4), qpn = u32(tvb, offset + 8),
    max_segment = u16(tvb, offset + 12), window = u16(tvb, offset + 14),
  }
  if c.block_len >= LONG_BLOCK then c.ext.target, c.ext.echo = u32(tvb, offset + 20), u32(tvb, offset + 24) end
end

-- The body of a packet of the handshake, or nil.
local function read_connect(tvb)
  if not has(tvb, BASE, CONNECT) then return nil end
  local c = { private_len = u16(tvb, 10), ird = u16(tvb, 12), ord = u16(tvb, 14) }
  c.block = BASE + CONNECT + c.private_len
  c.room = tvb:reported_len() - c.block
  if c.private_len > MAX_PRIVATE then
    c.wrong = "private data longer than 512 bytes"
  elseif c.room < 0 then
    c.wrong = "shorter than its private-data length says"
  else
    read_block(c, tvb, c.block, c.room)
  end
  return c
end

------------------------------------------------ what TRP can't be told from

-- A packet of no known connection is TRP only if all fixed values are right.

-- The version bits of both protocols; all reserved bits must be 0.
local CONTROL = 0x01 * 16 + 0x4

local function right_length(operation, length)
  return length >= (operation.least or 0) and length == (operation.body or length)
end

-- In real addresses the top 16 bits of an offset are 0 or all ones, and so they are in offsets that count from 0.
local function is_address(tvb, offset)
  local top = u16(tvb, offset)
  return top == 0 or top == 0xffff
end

local function plausible_segment(tvb, packet)
  local d = read_ddp(tvb, packet.body)
  if not d or d.control ~= CONTROL or not d.operation then return false end
  local operation, length = d.operation, packet.body_len - d.len
  if d.tagged ~= (operation.tagged == true) or length < 0 then return false end
  if d.tagged then return is_address(tvb, packet.body + 6) end
  if d.qn ~= operation.queue or d.msn == 0 or not right_length(operation, length) then return false end
  return not operation.single or (d.last and d.mo == 0)
end

local function right_run(first, past, ack)
  local length = first and past and distance(past, first)
  return length and length > 0 and length <= WIDE_WINDOW
    and distance(first, ack) > 0 and distance(first, ack) <= 2 * WIDE_WINDOW
end

local function plausible_sack(tvb, packet)
  if packet.body_len == 0 or packet.body_len % RUN ~= 0 or packet.body_len > RUN * MAX_RUNS then return false end
  for offset = packet.body, packet.body + packet.body_len - RUN, RUN do
    if not right_run(u32(tvb, offset), u32(tvb, offset + 4), packet.ack) then return false end
  end
  return true
end

-- Whether the packet could be TRP. Empty packets have so few fixed values that they need other evidence.
local function plausible(tvb, packet, evidence)
  read_rest(packet, tvb)
  if packet.body_len < 0 then return false end
  if bits(tvb, 10, 1, 7) ~= 0 then return false end
  if packet.segment then return plausible_segment(tvb, packet) end
  if packet.op == SACK then return plausible_sack(tvb, packet) end
  return evidence and packet.body_len == 0
end

local MAX_READS = 0x3fff -- the most that MPA's 14 bits can say (RFC 6581)

-- Whether a handshake packet is sufficient evidence by itself. An accept without a block is not.
local function convincing(packet)
  local c = packet.connect
  if not c or c.wrong then return false end
  if packet.op == RESOLVE or packet.op == RESOLVED then return c.ext ~= nil and (c.ext.max_segment or 0) == 0 end
  if c.ext then return (c.ext.max_segment or 0) >= 128 and (c.ext.window or 0) >= 1 and c.ext.window <= MAX_WINDOW end
  if c.room ~= 0 or c.ird > MAX_READS or c.ord > MAX_READS then return false end
  return packet.op == REQUEST and packet.ack == 0 and packet.psn ~= 0
end

-- Whether the interface's description says that urdma made this capture. The description can't be read when Wireshark
-- builds no tree. So it may only affect how packets without other evidence look.
local description = Field.new("frame.interface_description")

local function captured_by_urdma()
  local found = description()
  return found ~= nil and tostring(found.value):sub(1, 5) == "urdma"
end

----------------------------------------------------------- state of the file

-- A conversation is two addresses and ports, a way one direction of it, a side the facts about one sender:
--   base    PSN from which relative numbers count
--   lowest  lowest PSN seen
--   next    one past the highest
--   sent    from PSN to the record of the latest packet with it
--   acked   highest ACK received from the other side
--   cookie  the one in its extension block
--   end_psn the PSN after its Terminate, or of its fin; nothing follows
-- A record is the first pass's result for one packet. Later passes read records and change nothing, so all passes
-- show the same.
local ways     -- port pair to a list of ways
local requests -- requester's port to a list of requests
local records  -- port pair to frame number to record

local function forget()
  ways, requests, records = {}, {}, {}
end
forget()
trp.init = forget -- called for every file

local function port_pair(from, to) return from * 65536 + to end

local function list_at(map, key)
  local list = map[key]
  if not list then
    list = {}
    map[key] = list
  end
  return list
end

local function find_way(pinfo)
  for _, way in ipairs(ways[port_pair(pinfo.src_port, pinfo.dst_port)] or {}) do
    if way.src == pinfo.src and way.dst == pinfo.dst then return way end
  end
end

-- The new way goes first in its list: a later connection of the same addresses and ports hides an earlier one.
local function new_way(pinfo)
  local conversation, here, there = {}, { sent = {} }, { sent = {} }
  local out = { src = pinfo.src, dst = pinfo.dst, conversation = conversation, mine = here, theirs = there }
  local back = { src = pinfo.dst, dst = pinfo.src, conversation = conversation, mine = there, theirs = here }
  table.insert(list_at(ways, port_pair(pinfo.src_port, pinfo.dst_port)), 1, out)
  table.insert(list_at(ways, port_pair(pinfo.dst_port, pinfo.src_port)), 1, back)
  pinfo.conversation = trp -- later packets come to us first, whoever owns the port number
  return out
end

local function new_record(pinfo)
  local record = { frame = pinfo.number, time = pinfo.rel_ts }
  list_at(records, port_pair(pinfo.src_port, pinfo.dst_port))[pinfo.number] = record
  return record
end

local function find_record(pinfo)
  return (records[port_pair(pinfo.src_port, pinfo.dst_port)] or {})[pinfo.number]
end

--------------------------------------------------- first pass: the handshake

-- The request to which a packet with this ACK may be the answer.
local function find_request(pinfo, psn)
  for _, request in ipairs(requests[pinfo.dst_port] or {}) do
    if request.psn == psn and request.from == pinfo.dst and request.to == pinfo.src then return request end
  end
end

local function note_request(record, packet, pinfo)
  for _, known in ipairs(list_at(requests, pinfo.src_port)) do
    if known.psn == packet.psn and known.from == pinfo.src and known.port == pinfo.dst_port and known.to == pinfo.dst then
      record.resent = known.record.frame
      record.twin = known.record
      return
    end
  end
  table.insert(list_at(requests, pinfo.src_port), 1, {
    psn = packet.psn, from = pinfo.src, to = pinfo.dst, port = pinfo.dst_port,
    connect = packet.connect, record = record,
  })
end

local function cookie_of(connect) return connect and connect.ext and connect.ext.cookie end

-- Starts the sides of a connection at the numbers of its handshake. Data may have been seen before this copy of the
-- accept.
local function start(side, isn, connect)
  side.base = isn
  side.lowest = isn
  side.next = side.next or isn
  side.cookie = cookie_of(connect)
end

local function note_accept(record, packet, way, request, pinfo)
  local accept = way and way.conversation.accept
  if accept and accept.psn == packet.psn and accept.ack == packet.ack then
    record.resent = accept.frame
    return way
  end
  if not way or accept then way = new_way(pinfo) end
  local conversation = way.conversation
  conversation.accept = { psn = packet.psn, ack = packet.ack, frame = pinfo.number }
  conversation.known = true
  start(way.mine, packet.psn, packet.connect)
  start(way.theirs, packet.ack, request and request.connect)
  return way
end

-- The record of a handshake packet, or nil if it is not TRP.
local function note_handshake(packet, way, pinfo, tvb)
  packet.connect = read_connect(tvb)
  local request = not asks(packet.op) and find_request(pinfo, packet.ack) or nil
  if not (way or request and packet.connect or convincing(packet)) then return nil end
  local record = new_record(pinfo)
  if asks(packet.op) then note_request(record, packet, pinfo) end
  if packet.op == ACCEPT then way = note_accept(record, packet, way, request, pinfo) end
  if not way then new_way(pinfo) end
  if request then
    record.request = request.record.frame
    if packet.op ~= RETRY then request.record.answer = request.record.answer or record.frame end
  end
  return record
end

------------------------------------------ first pass: segments and their acks

local function note_segment(record, packet, side, tvb)
  local psn, earlier = packet.psn, side.sent[packet.psn]
  if earlier then
    record.resent, record.twin = earlier.frame, earlier
  elseif side.next and distance(psn, side.next) < 0 then
    record.out_of_order = true
  elseif side.next and psn ~= side.next then
    record.gap = true
  end
  record.late = side.end_psn ~= nil and distance(psn, side.end_psn) >= 0 and not earlier
  side.sent[psn] = record
  if not side.lowest or distance(psn, side.lowest) < 0 then side.lowest = psn end
  if not side.next or distance(psn, side.next) >= 0 then side.next = next_after(psn) end
  local d = read_ddp(tvb, packet.body)
  if d and d.op == TERMINATE and not d.tagged then side.end_psn = next_after(psn) end
end

-- All packets with this PSN were acknowledged here.
local function mark_acked(segment, frame)
  while segment and not segment.acked_in do
    segment.acked_in = frame
    segment = segment.twin
  end
end

-- A capture can lack any number of packets; no gap is followed further than a window reaches.
local FARTHEST = 4 * 65536

-- Marks the seen segments from one PSN up to another as acknowledged by this packet. The newest gives the round trip
-- time, unless it was sent twice: then it is unknown which copy was answered. At most most PSNs are examined; returns
-- their number.
local function acknowledge(record, side, from, past, most)
  if not side.lowest then return 0 end
  if distance(side.lowest, from) > 0 then from = side.lowest end
  if distance(past, side.next) > 0 then past = side.next end
  local psn = from
  if distance(past, from) > most then psn = (past - most) % WRAP end
  local length = math.max(0, distance(past, psn))
  while distance(past, psn) > 0 do
    local segment = side.sent[psn]
    if segment and not segment.acked_in then
      mark_acked(segment, record.frame)
      record.acks = segment.frame
      record.rtt = not segment.resent and record.time - segment.time or nil
    end
    psn = next_after(psn)
  end
  return length
end

local function note_ack(record, packet, side)
  local from = side.acked or side.lowest or packet.ack
  if distance(packet.ack, from) < 0 then return end -- overtaken
  acknowledge(record, side, from, packet.ack, FARTHEST)
  side.acked = packet.ack
end

local function note_sack(record, packet, side, tvb)
  -- Not more runs than a receiver reads: a forged packet of 64 KiB has 8,000. All runs of a true one together are no
  -- longer than a window.
  local body_len, left = math.min(packet.body_len, RUN * MAX_RUNS), FARTHEST
  for offset = packet.body, packet.body + body_len - RUN, RUN do
    local first, past = u32(tvb, offset), u32(tvb, offset + 4)
    if right_run(first, past, packet.ack) then left = left - acknowledge(record, side, first, past, left) end
  end
end

-- The same acknowledgement again, while segments are under way. A probe asks for one, and doesn't count.
local function note_duplicate(record, packet, mine, theirs)
  local said = mine.said
  local same = said and not packet.segment and packet.op == DATA and not packet.ar
    and said.ack == packet.ack and said.credits == packet.credits and said.psn == packet.psn
    and theirs.next and distance(theirs.next, packet.ack) > 0
  mine.repeats = same and mine.repeats + 1 or 0
  if same then record.duplicate = mine.repeats end
  mine.said = packet
end

local function note_numbers(record, packet, mine, theirs)
  mine.base = mine.base or packet.psn
  theirs.base = theirs.base or packet.ack
  record.base, record.ack_base = mine.base, theirs.base
end

local function note_data(packet, way, pinfo, tvb)
  local mine, theirs = way.mine, way.theirs
  local record = new_record(pinfo)
  record.wrong_cookie = theirs.cookie ~= nil and packet.cookie ~= nil and packet.cookie ~= theirs.cookie
  note_numbers(record, packet, mine, theirs)
  if record.wrong_cookie then return record end -- its receiver takes no notice of it either
  if packet.op == SACK then note_sack(record, packet, theirs, tvb) end
  note_ack(record, packet, theirs)
  note_duplicate(record, packet, mine, theirs)
  if packet.segment then note_segment(record, packet, mine, tvb) end
  if packet.op == FIN and not mine.end_psn then mine.end_psn = packet.psn end
  return record
end

-- The record of a TRP packet, made when it is first seen; or nil.
local function first_pass(tvb, pinfo)
  local way, packet = find_way(pinfo), read_base(tvb)
  if not packet then return way and new_record(pinfo) end
  if not packet_names[packet.op] then return nil end
  if is_handshake(packet.op) then return note_handshake(packet, way, pinfo, tvb) end

  local known = way and way.conversation.known
  if not known and not plausible(tvb, packet, way ~= nil) then return nil end
  way = way or new_way(pinfo)
  way.conversation.known = true
  read_rest(packet, tvb)
  return note_data(packet, way, pinfo, tvb)
end

------------------------------------------------------------------ the tree

local function malformed(tree, text)
  tree:add_proto_expert_info(experts.malformed, "Malformed: " .. text)
end

local function show_header(tree, tvb, packet, record)
  add(tree, fields.psn, tvb, 0, 4)
  if record.base then add_generated(tree, fields.psn_rel, distance(packet.psn, record.base)) end
  add(tree, fields.ack, tvb, 4, 4)
  if record.ack_base then add_generated(tree, fields.ack_rel, distance(packet.ack, record.ack_base)) end
  add(tree, fields.op, tvb, 8, 2)
  if has(tvb, 8, 2) then add_value(tree, fields.credits, tvb:range(8, 2), packet.credits) end
  if is_handshake(packet.op) then return end
  local flags = add(tree, fields.flags, tvb, 10, 2)
  if flags then
    add(flags, fields.flags_ar, tvb, 10, 2)
    add(flags, fields.flags_reserved, tvb, 10, 2)
    add(flags, fields.flags_credits, tvb, 10, 2)
  end
  add(tree, fields.cookie, tvb, 12, 4)
end

local function show_block(tree, tvb, c)
  local at = c.block
  local block = add_rest(tree, fields.block, tvb, at, c.block_len or BLOCK)
  if not block then return end
  add(block, fields.magic, tvb, at, 2)
  add(block, fields.version, tvb, at + 2, 1)
  add(block, fields.block_len, tvb, at + 3, 1)
  if not c.ext then return end
  add(block, fields.block_cookie, tvb, at + 4, 4)
  add(block, fields.qpn, tvb, at + 8, 4)
  add(block, fields.max_segment, tvb, at + 12, 2)
  add(block, fields.window, tvb, at + 14, 2)
  add(block, fields.capabilities, tvb, at + 16, 4)
  local known = BLOCK
  if c.block_len >= LONG_BLOCK then
    known = LONG_BLOCK
    add(block, fields.target, tvb, at + 20, 4)
    add(block, fields.echo, tvb, at + 24, 4)
    add(block, fields.min_rnr_timer, tvb, at + 28, 1)
  end
  if c.block_len >= NUMBER_BLOCK then
    known = NUMBER_BLOCK
    add(block, fields.path_mtu, tvb, at + 32, 1)
    add(block, fields.rq_psn, tvb, at + 33, 3)
  end
  add_rest(block, fields.block_rest, tvb, at + known, c.block_len - known)
end

local function connect_info(packet, c)
  local info = { packet_names[packet.op], "PSN=" .. decimal(packet.psn) }
  if not asks(packet.op) then table.insert(info, "Ack=" .. decimal(packet.ack)) end
  if not c then return info end
  if packet.op == RESOLVED and c.ird ~= 0 then table.insert(info, c.ird == 1 and "nobody listens" or c.ird == 3 and "not yet" or "rejected") end
  if packet.op == REJECT and c.ird ~= 0 then table.insert(info, c.ird == 8 and "nobody listens" or c.ird == 28 and "the program refuses" or "reason " .. decimal(c.ird)) end
  table.insert(info, "IRD=" .. decimal(c.ird))
  table.insert(info, "ORD=" .. decimal(c.ord))
  if c.ext and c.ext.qpn then table.insert(info, string.format("QPN=0x%06x", c.ext.qpn)) end
  if c.ext and (c.ext.target or 0) ~= 0 then table.insert(info, string.format("Target=0x%06x", c.ext.target)) end
  if c.ext and (c.ext.echo or 0) ~= 0 then table.insert(info, string.format("Echo=0x%08x", c.ext.echo)) end
  if c.private_len > 0 then table.insert(info, "Private=" .. decimal(c.private_len)) end
  if not c.ext and not c.cut then table.insert(info, "no block") end
  return info
end

local function show_connect(tree, tvb, packet)
  local c = read_connect(tvb)
  add(tree, fields.private_len, tvb, 10, 2)
  add(tree, fields.ird, tvb, 12, 2)
  add(tree, fields.ord, tvb, 14, 2)
  if packet.op == REJECT or packet.op == RESOLVED and c and c.ird ~= 0 and c.ird ~= 3 then tree:add_proto_expert_info(experts.reject) end
  if not c then
    if packet.body_len < CONNECT then malformed(tree, "packet of the handshake without its body") end
    return connect_info(packet, nil)
  end
  if c.private_len <= MAX_PRIVATE then add_rest(tree, fields.private, tvb, BASE + CONNECT, c.private_len) end
  if c.block_len then
    show_block(tree, tvb, c)
  elseif c.room > 0 then
    add_rest(tree, fields.trailer, tvb, c.block, c.room)
  end
  if c.ext then add_rest(tree, fields.trailer, tvb, c.block + c.block_len, c.room - c.block_len) end
  if c.wrong then malformed(tree, c.wrong) end
  return connect_info(packet, c)
end

-- A number as in the Info column: relative to its base if that is known.
local function relative(psn, base_psn)
  if not psn then return "?" end
  return decimal(base_psn and distance(psn, base_psn) or psn)
end

local function run_text(first, past, base_psn)
  if not first or not past then return "?" end
  local last = (past - 1) % WRAP
  if first == last then return relative(first, base_psn) end
  return relative(first, base_psn) .. ".." .. relative(last, base_psn)
end

local function show_run(tree, tvb, offset, packet, record)
  local first, past = u32(tvb, offset), u32(tvb, offset + 4)
  local text = run_text(first, past, record.ack_base)
  local run = add_rest(tree, fields.run, tvb, offset, RUN)
  if not run then return text end
  run:append_text(": " .. text)
  add(run, fields.run_first, tvb, offset, 4)
  add(run, fields.run_end, tvb, offset + 4, 4)
  if first and past and not (distance(past, first) > 0 and distance(first, packet.ack) > 0) then
    malformed(run, "run is empty or does not begin after ACK")
  end
  return text
end

local function show_sack(tree, tvb, packet, record)
  local info = { "Sack Ack=" .. relative(packet.ack, record.ack_base), "Credits=" .. decimal(packet.credits) }
  local count = math.floor(packet.body_len / RUN)
  add_generated(tree, fields.run_count, count)
  if packet.body_len % RUN ~= 0 then malformed(tree, "body is not a whole number of 8-byte runs") end
  if count > MAX_RUNS then malformed(tree, "more than 32 runs") end
  for i = 0, math.min(count, MAX_RUNS) - 1 do
    table.insert(info, show_run(tree, tvb, packet.body + i * RUN, packet, record))
  end
  return info
end

---------------------------------------------------------- the DDP segment

-- The fields of a DDP header, as many as there are bytes.
local function show_ddp(tree, set, tvb, offset)
  add(tree, set.tagged, tvb, offset, 1)
  add(tree, set.last, tvb, offset, 1)
  add(tree, set.op, tvb, offset + 1, 1)
  add(tree, set.stag, tvb, offset + 2, 4)
  if bits(tvb, offset, 0, 1) == 1 then
    add(tree, set.to, tvb, offset + 6, 8)
    return
  end
  add(tree, set.qn, tvb, offset + 6, 4)
  add(tree, set.msn, tvb, offset + 10, 4)
  add(tree, set.mo, tvb, offset + 14, 4)
end

local function show_immediate(tree, tvb, body)
  local imm = add(tree, fields.imm, tvb, body, 8)
  if imm then add(imm, fields.imm_data, tvb, body, 4) end
  return { "imm_data=" .. hex32(u32(tvb, body)) }
end

local function show_atomic_request(tree, tvb, body)
  local atomic = add_rest(tree, fields.atomic, tvb, body, 52)
  if not atomic then return {} end
  add(atomic, fields.atomic_op, tvb, body, 4)
  add(atomic, fields.atomic_id, tvb, body + 4, 4)
  add(atomic, fields.atomic_stag, tvb, body + 8, 4)
  add(atomic, fields.atomic_to, tvb, body + 12, 8)
  add(atomic, fields.atomic_data, tvb, body + 20, 8)
  add(atomic, fields.atomic_mask, tvb, body + 28, 8)
  local op = bits(tvb, body + 3, 4, 4)
  if op == 2 then
    add(atomic, fields.atomic_compare, tvb, body + 36, 8)
    add(atomic, fields.atomic_compare_mask, tvb, body + 44, 8)
  end
  if op == 1 then
    atomic:add_proto_expert_info(experts.reader, "Wireshark's own reader shows the operands of a Swap as Compare Data and Mask")
  end
  return {
    atomic_names[op] or "operation " .. decimal(op), "ID=" .. decimal(u32(tvb, body + 4)),
    "STag=" .. hex32(u32(tvb, body + 8)), "TO=" .. hex64(tvb, body + 12),
  }
end

local function show_atomic_response(tree, tvb, body)
  local atomic = add_rest(tree, fields.atomic, tvb, body, 12)
  if not atomic then return {} end
  add(atomic, fields.atomic_id, tvb, body, 4)
  add(atomic, fields.atomic_original, tvb, body + 4, 8)
  return { "ID=" .. decimal(u32(tvb, body)), "Original=" .. hex64(tvb, body + 4) }
end

-- Wireshark's own dissector has the fields of a Read Request; this is for Info.
local function read_request_info(_, tvb, body)
  return {
    "Size=" .. decimal(u32(tvb, body + 12)),
    "Source STag=" .. hex32(u32(tvb, body + 16)), "TO=" .. hex64(tvb, body + 20),
  }
end

local function cause_of(code)
  return causes[code] or string.format("unassigned code, layer %d type %d code %d",
    math.floor(code / 4096), math.floor(code / 256) % 16, code % 256)
end

-- The offsets of the parts of the Terminate at this offset.
local function read_terminate(tvb, body)
  local t = {
    code = u16(tvb, body), m = bits(tvb, body + 2, 0, 1) == 1,
    d = bits(tvb, body + 2, 1, 1) == 1, r = bits(tvb, body + 2, 2, 1) == 1,
  }
  t.ddp = body + 4 + ((t.m or t.d) and 2 or 0)
  t.ddp_len = bits(tvb, t.ddp, 0, 1) == 1 and TAGGED or UNTAGGED
  t.read = t.ddp + (t.d and t.ddp_len or 0)
  t.past = t.read + (t.r and READ_REQUEST or 0)
  return t
end

local function show_refused(tree, tvb, t)
  if t.m or t.d then add(tree, fields.term_len, tvb, t.ddp - 2, 2) end
  local header = t.d and add_rest(tree, fields.refused, tvb, t.ddp, t.ddp_len)
  if header then show_ddp(header, refused_ddp, tvb, t.ddp) end
  local read = t.r and add_rest(tree, fields.term_read, tvb, t.read, READ_REQUEST)
  if not read then return end
  add(read, fields.read_sink_stag, tvb, t.read, 4)
  add(read, fields.read_sink_to, tvb, t.read + 4, 8)
  add(read, fields.read_len, tvb, t.read + 12, 4)
  add(read, fields.read_src_stag, tvb, t.read + 16, 4)
  add(read, fields.read_src_to, tvb, t.read + 20, 8)
end

local function show_terminate(tree, tvb, body)
  local t = read_terminate(tvb, body)
  if not t.code then return {} end
  local term = add_rest(tree, fields.term, tvb, body, t.past - body)
  local cause = cause_of(t.code)
  term:append_text(": " .. cause)
  local code = add(term, fields.term_code, tvb, body, 2)
  add(code, fields.term_layer, tvb, body, 2)
  add(code, fields.term_type, tvb, body, 2)
  add(code, fields.term_error, tvb, body, 2)
  add_generated(term, fields.term_cause, tvb:range(body, 2), cause)
  add(term, fields.term_m, tvb, body + 2, 1)
  add(term, fields.term_d, tvb, body + 2, 1)
  add(term, fields.term_r, tvb, body + 2, 1)
  show_refused(term, tvb, t)
  term:add_proto_expert_info(experts.terminate, "Terminate: " .. cause)
  return { "(" .. cause .. ")" }
end

local bodies = {
  [1] = read_request_info, [7] = show_terminate, [8] = show_immediate, [9] = show_immediate,
  [10] = show_atomic_request, [11] = show_atomic_response,
}

---------------------------------------------------- Wireshark's own reader

local reader = Dissector.get("iwarp_ddp_rdmap")
local data = Dissector.get("data")

-- Where the headers in a Terminate end for Wireshark's own dissector: it derives the size of the refused DDP header
-- from the error type.
local function end_of_terminate(tvb, t)
  local past = t.ddp - ((t.m and not t.d) and 2 or 0)
  if t.d then past = past + (bits(tvb, t.ddp - 6, 4, 4) == 1 and TAGGED or UNTAGGED) end
  return past + (t.r and READ_REQUEST or 0)
end

-- Whether Wireshark's own dissector works without the missing bytes.
local function readable(tvb, d, tree)
  local body = d.offset + d.len
  if d.op ~= TERMINATE then
    return not d.operation or has(tvb, body, d.operation.body or 0)
  end
  if not has(tvb, body, 4) then return false end
  local t = read_terminate(tvb, body)
  local theirs = end_of_terminate(tvb, t)
  if (t.d or t.r) and theirs ~= t.past and has(tvb, 0, t.past) then
    tree:add_proto_expert_info(experts.reader, "Wireshark's own reader misplaces the headers in this Terminate; trp.term has them")
  end
  return has(tvb, 0, theirs)
end

-- Sends that Wireshark's own dissector must not get. It counts data that was sent again as more data. And it passes
-- messages without a solicited event to its dissector of RPC over RDMA, which reads 16 bytes before it checks the
-- length, and which loses messages of several segments between the passes.
local function is_kept(tvb, d, again)
  if d.tagged or d.op < 3 or d.op > 6 then return false end
  if again then return true end
  return d.op <= 4 and not (d.last and d.mo == 0 and has(tvb, d.offset + d.len, 16))
end

local function hand_over(tvb, pinfo, tree, trp_tree, d, again)
  if not reader or not readable(tvb, d, trp_tree) then return end
  if not is_kept(tvb, d, again) then
    -- It raises no error that we know of; if it does, our fields are shown all the same.
    pcall(reader.call, reader, tvb:range(d.offset):tvb(), pinfo, tree)
    return
  end
  local body = d.offset + d.len
  if has(tvb, body, 1) then data:call(tvb:range(body):tvb(), pinfo, tree) end
end

---------------------------------------------------------- segments, put together

-- Errors for which the receiver would send a Terminate.
local function check_segment(tree, d, length)
  local operation, wrong = d.operation, nil
  if d.control % 16 ~= CONTROL % 16 and math.floor(d.control / 4) % 4 ~= 1 or math.floor(d.control / 16) % 4 ~= 1 then
    wrong = "version of DDP or RDMAP is not 1"
  elseif not operation then
    wrong = "RDMAP opcode above 11"
  elseif d.tagged ~= (operation.tagged == true) then
    wrong = "opcode belongs to the other buffer model"
  elseif not d.tagged and d.qn ~= operation.queue then
    wrong = "opcode does not belong on this queue"
  elseif operation.single and (d.mo ~= 0 or not d.last) then
    wrong = "message of more than one segment"
  elseif not right_length(operation, length) then
    wrong = "body is not as long as its opcode wants it"
  end
  if wrong then tree:add_proto_expert_info(experts.refused, "Its receiver answers with a Terminate: " .. wrong) end
end

local function segment_info(tvb, d, length)
  local name = d.operation and d.operation.name:gsub("^RDMA ", "") or "opcode " .. decimal(d.op)
  local info = { name }
  if d.last and not (d.operation and d.operation.single) then table.insert(info, "Last") end
  if d.tagged then
    table.insert(info, "STag=" .. hex32(d.stag))
    table.insert(info, "TO=" .. hex64(tvb, d.offset + 6))
  else
    table.insert(info, "MSN=" .. decimal(d.msn))
    if not (d.operation and d.operation.single) then table.insert(info, "MO=" .. decimal(d.mo)) end
  end
  if d.operation and d.operation.invalidates then table.insert(info, "Invalidate=" .. hex32(d.stag)) end
  if not (d.operation and d.operation.single) then table.insert(info, "Len=" .. decimal(length)) end
  return info
end

local function append(list, more)
  for _, item in ipairs(more) do table.insert(list, item) end
end

local function show_segment(tree, tvb, packet, pinfo, root, record)
  local info = { "Data PSN=" .. relative(packet.psn, record.base) }
  local segment = add_rest(tree, fields.segment, tvb, packet.body, UNTAGGED)
  if not segment then return info end
  show_ddp(segment, ddp, tvb, packet.body)
  local d = read_ddp(tvb, packet.body)
  if not d then
    if not has(tvb, 0, tvb:reported_len()) then return info end
    segment:add_proto_expert_info(experts.refused, "Its receiver answers with a Terminate: segment shorter than its header")
    return info
  end
  local length = packet.body_len - d.len
  if wanted then segment:set_len(d.len) end
  add_generated(segment, fields.payload_len, length)
  local words = segment_info(tvb, d, length)
  append(info, words)
  segment:append_text(": " .. table.concat(words, " "))
  if bodies[d.op] and d.tagged == (d.operation.tagged == true) then
    append(info, bodies[d.op](tree, tvb, packet.body + d.len))
  end
  check_segment(segment, d, length)
  hand_over(tvb, pinfo, root, tree, d, record.resent ~= nil)
  return info
end

local function show_empty(packet, record)
  local info = { "Ack=" .. relative(packet.ack, record.ack_base), "Credits=" .. decimal(packet.credits) }
  if packet.ar then table.insert(info, 1, "Probe") end
  return info
end

local function show_fin(tree, packet, record)
  if packet.body_len > 0 then malformed(tree, "fin with a body") end
  return { "Fin", "PSN=" .. relative(packet.psn, record.base), "Ack=" .. relative(packet.ack, record.ack_base) }
end

-- Shows the body, and returns the text for Info.
local function show_body(tree, tvb, packet, pinfo, root, record)
  if is_handshake(packet.op) then return show_connect(tree, tvb, packet) end
  if packet.body_len < 0 then
    malformed(tree, "shorter than its header")
    return { packet_names[packet.op] }
  end
  if packet.op == SACK then return show_sack(tree, tvb, packet, record) end
  if packet.op == FIN then return show_fin(tree, packet, record) end
  if not packet.segment then return show_empty(packet, record) end
  return show_segment(tree, tvb, packet, pinfo, root, record)
end

-------------------------------------------------------------- the analysis

-- Conclusions from other packets about this one, and the marks at the beginning of Info.
local marks = {
  { flag = "resent", expert = experts.retransmission, text = "[Retransmission]" },
  { flag = "out_of_order", expert = experts.out_of_order, text = "[Out of order]" },
  { flag = "gap", expert = experts.gap, text = "[Segments missing]" },
  { flag = "late", expert = experts.late, text = "[After the end]" },
  { flag = "wrong_cookie", expert = experts.cookie, text = "[Wrong cookie]" },
}

local function time_of(seconds)
  local whole = math.floor(seconds)
  return NSTime.new(whole, math.floor((seconds - whole) * 1e9 + 0.5))
end

-- A subtree that is made when its first item is added.
local function analysis_of(tree)
  local analysis
  return function()
    analysis = analysis or tree:add(fields.analysis):set_generated()
    return analysis
  end
end

local function show_links(analysis, record)
  local links = {
    { fields.resent, record.resent }, { fields.acked_in, record.acked_in }, { fields.acks, record.acks },
    { fields.request_in, record.request }, { fields.answer_in, record.answer }, { fields.dup_ack, record.duplicate },
  }
  for _, link in ipairs(links) do
    local field, value = link[1], link[2]
    if value then add_generated(analysis(), field, value) end
  end
  if record.rtt then add_generated(analysis(), fields.ack_rtt, time_of(record.rtt)) end
end

local function show_analysis(tree, packet, record, info)
  local analysis = analysis_of(tree)
  show_links(analysis, record)
  if record.duplicate then
    local text = "Duplicate ack #" .. decimal(record.duplicate)
    analysis():add_proto_expert_info(experts.duplicate, text)
    table.insert(info, 1, "[" .. text .. "]")
  end
  if not is_handshake(packet.op) and packet.credits == 0 and packet.op ~= FIN then
    analysis():add_proto_expert_info(experts.closed)
    table.insert(info, "[No credits]")
  end
  for _, mark in ipairs(marks) do
    if record[mark.flag] then
      analysis():add_proto_expert_info(mark.expert)
      table.insert(info, 1, mark.text)
    end
  end
end

---------------------------------------------------------------- entry points

local function set_columns(pinfo, info)
  pinfo.cols.protocol:set("TRP")
  pinfo.cols.info:set(table.concat(info, " "))
end

local ourselves -- as a Dissector, which there is once this script was loaded

local function is_wanted(root)
  if root.visible then return true end
  ourselves = ourselves or Dissector.get("trp")
  return root:referenced(ourselves)
end

-- A packet of a known connection whose header was cut by the capture.
local function show_stump(tree, tvb, pinfo)
  add(tree, fields.psn, tvb, 0, 4)
  add(tree, fields.ack, tvb, 4, 4)
  if tvb:reported_len() < BASE then malformed(tree, "shorter than its header") end
  set_columns(pinfo, { "TRP, cut within its header" })
end

local function show(tvb, pinfo, root, packet, record)
  local whole = tvb:captured_len() == tvb:reported_len()
  local shown = packet and math.min(packet.body, tvb:captured_len()) or tvb:captured_len()
  wanted = is_wanted(root)
  local tree = shown > 0 and root:add(trp, tvb:range(0, shown)) or root:add(trp)
  if not whole then tree:add_proto_expert_info(experts.cut) end
  if not packet then return show_stump(tree, tvb, pinfo) end

  show_header(tree, tvb, packet, record)
  local info = show_body(tree, tvb, packet, pinfo, tree and root, record)
  tree:append_text(", " .. table.concat(info, " "))
  show_analysis(tree, packet, record, info)
  if not whole then table.insert(info, "[cut]") end
  set_columns(pinfo, info) -- last: Wireshark's reader has its own idea
end

-- Whether a packet of no known connection looks right, given other evidence.
local function looks_right(tvb, packet)
  if not packet_names[packet.op] then return false end
  if not is_handshake(packet.op) then return plausible(tvb, packet, true) end
  local c = read_connect(tvb)
  return c ~= nil and not c.wrong
end

-- The record of a TRP packet: the first pass's result, or an empty one if there is other evidence. In later passes
-- only the interface is evidence, because Wireshark then also asks us about packets before a conversation was
-- recognized.
local function recognize(tvb, pinfo, chosen)
  local record = find_record(pinfo)
  if not record and not pinfo.visited then record = first_pass(tvb, pinfo) end
  if record then return record end
  local packet = read_base(tvb)
  chosen = chosen and not pinfo.visited
  if not packet or not (chosen or captured_by_urdma()) or not looks_right(tvb, packet) then return nil end
  return new_record(pinfo)
end

-- The opcode of a packet that belongs to no connection, or nil.
local function unconnected(tvb, pinfo)
  if pinfo.src_port ~= UNCONNECTED_PORT or pinfo.dst_port ~= UNCONNECTED_PORT or tvb:captured_len() < BASE then return nil end
  local op, credits = tvb:range(8, 2):bitfield(0, 4), tvb:range(8, 2):bitfield(4, 12)
  if not UNCONNECTED[op] or credits ~= 0 or tvb:range(4, 4):uint() ~= 0 then return nil end
  return op
end

-- Adds the meaning of a bit of the 32 at offset.
local function add_bit(tree, field, tvb, offset, bit)
  local set = tvb:range(offset, 4):bitfield(bit, 1) == 1
  if wanted then tree:add(field, tvb:range(offset, 4), set) end
  return set
end

local function show_uc(tree, tvb)
  add_bit(tree, fields.first, tvb, 18, 0)
  add_bit(tree, fields.last, tvb, 18, 1)
  if not add_bit(tree, fields.write, tvb, 18, 2) then return UNCONNECTED[UC] end
  add(tree, fields.uc_stag, tvb, 26, 4)
  add(tree, fields.uc_to, tvb, 30, 8)
  return UNCONNECTED[UC] + UC_WRITE
end

-- A message, or part of one, between queue pairs of type UD or UC.
local function show_unconnected(tvb, pinfo, root, op)
  wanted = is_wanted(root)
  local size = UNCONNECTED[op]
  local tree = root:add(trp, tvb:range(0, math.min(size, tvb:captured_len())))
  add(tree, fields.psn, tvb, 0, 4)
  add(tree, fields.op, tvb, 8, 2)
  local info = { packet_names[op] }
  if tvb:reported_len() < size then malformed(tree, "shorter than its header") end
  if tvb:captured_len() >= size then
    local at = op == DATAGRAM and 22 or 18 -- of the flags
    local imm = op == DATAGRAM and 0 or 3  -- which bit says that there is immediate data
    add(tree, fields.dst_qpn, tvb, 10, 4)
    add(tree, fields.src_qpn, tvb, 14, 4)
    if op == DATAGRAM then add(tree, fields.qkey, tvb, 18, 4) else size = show_uc(tree, tvb) end
    add_bit(tree, fields.solicited, tvb, at, imm + 1)
    if add_bit(tree, fields.has_immediate, tvb, at, imm) then add(tree, fields.message_imm, tvb, at + 4, 4) end
    if tvb:captured_len() > size then add(tree, fields.message, tvb, size, tvb:captured_len() - size) end
    table.insert(info, string.format("%06x → %06x, %d bytes", tvb:range(14, 4):uint(), tvb:range(10, 4):uint(),
      math.max(0, tvb:reported_len() - size)))
  end
  if tvb:captured_len() < tvb:reported_len() then
    tree:add_proto_expert_info(experts.cut)
    table.insert(info, "[cut]")
  end
  set_columns(pinfo, info)
end

local function dissect(tvb, pinfo, tree, chosen)
  local op = unconnected(tvb, pinfo)
  if op then
    show_unconnected(tvb, pinfo, tree, op)
    return true
  end
  local record = recognize(tvb, pinfo, chosen)
  if not record then return false end
  local packet = read_base(tvb)
  if packet then read_rest(packet, tvb) end
  show(tvb, pinfo, tree, packet, record)
  return true
end

-- For recognized conversations and "Decode as…".
function trp.dissector(tvb, pinfo, tree)
  return dissect(tvb, pinfo, tree, true) and tvb:reported_len() or 0
end

trp:register_heuristic("udp", function(tvb, pinfo, tree)
  return dissect(tvb, pinfo, tree, false)
end)

DissectorTable.get("udp.port"):add_for_decode_as(trp)
