package inject

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"urdma/verbs/abi"
)

// Behaviour is something that specifications allow and hardware seldom does, or that
// hardware refuses and urdmad lets pass.
type Behaviour struct {
	Name    string
	Bit     uint32 // abi.Strict*
	Does    string
	Allowed string // the specification and the sentence in it that allows the behaviour
}

// Behaviours are the behaviours of urdma exec --strict, in the order of docs/debugging.md.
var Behaviours = [...]Behaviour{
	{"garbage", abi.StrictGarbage, "in a failed completion all fields but wr_id, status, qp_num and vendor_err are random",
		"ibv_poll_cq(3): if the status is other than IBV_WC_SUCCESS, only these are valid"},
	{"slots", abi.StrictSlots, "an unsignaled send keeps its place in the send queue until the completion of a later " +
		"send has been polled: without one, ibv_post_send fails with ENOMEM for good",
		"ibv_post_send(3): a request is done with once it is fully executed and a completion has been retrieved from the " +
			"queue"},
	{"late", abi.StrictLate, "polls of a queue without a completion channel find nothing for a while although " +
		"completions exist: those of different queues come in another order, and several at once",
		"ibv_poll_cq(3): a poll returns what the queue contains; no page says when a completion gets there, nor in which " +
			"order for two queues"},
	{"srq-order", abi.StrictSRQOrder, "a message takes any receive of a shared receive queue, not the oldest",
		"ibv_post_srq_recv(3) promises no order in which messages take the receives of a queue"},
	{"inline", abi.StrictInline, "max_inline_data is as requested in ibv_create_qp, not rounded up",
		"ibv_create_qp(3): the values will be greater than or equal to the values requested"},
	{"rnr", abi.StrictRNR, "one message in four finds no receive when it arrives: with an rnr_retry of 0 its send fails",
		"ibv_modify_qp(3): rnr_retry and min_rnr_timer are for a peer that is not ready for a message, which can happen " +
			"at any time"},
	{"spurious", abi.StrictSpurious,
		"after a completion event, once the queue is armed again, another event comes without a completion",
		"ibv_get_cq_event(3): an extra event may be triggered without a completion in the queue"},
	{"write-order", abi.StrictWriteOrder,
		"RDMA Writes arrive in pieces; in half of these the last byte is written first, the others 0.3 ms later",
		"ibv_query_qp_data_in_order(3), which returns 0; RFC 5040 section 5.5: memory has the written data only when a " +
			"completion after the Write says so"},
	{"attributes", abi.StrictAttributes,
		"sends of a queue pair that is connected by number fail as between adapters: RETRY_EXC_ERR if sq_psn differs from " +
			"the peer's rq_psn; REM_INV_REQ_ERR if path_mtu differs and the message is longer than the smaller one, " +
			"or if more Reads and atomics are outstanding than the peer's max_dest_rd_atomic",
		"ibv_modify_qp(3): rq_psn is the PSN of the first packet received, max_dest_rd_atomic the number of Reads and " +
			"atomics with resources, path_mtu the size of a packet on the path; Linux's rxe checks each"},
	{"reuse", abi.StrictReuse, "a new queue pair has the number of the last one that the process destroyed, and new " +
		"memory the keys of the last region that it deregistered",
		"ibv_create_qp(3) and ibv_reg_mr(3) promise no number or key that was not used before"},
}

// limits are the fields of struct ibv_device_attr that can be lowered.
var limits = [...]struct {
	name string
	of   func(*abi.Device) *uint32
}{
	{"max_sge", func(d *abi.Device) *uint32 { return &d.MaxSGE }},
	{"max_sge_rd", func(d *abi.Device) *uint32 { return &d.MaxSGERd }},
	{"max_qp_wr", func(d *abi.Device) *uint32 { return &d.MaxQPWR }},
	{"max_inline_data", func(d *abi.Device) *uint32 { return &d.MaxInline }},
	{"max_cqe", func(d *abi.Device) *uint32 { return &d.MaxCQE }},
	{"max_qp_rd_atom", func(d *abi.Device) *uint32 { return &d.MaxRdAtom }},
	{"max_srq_wr", func(d *abi.Device) *uint32 { return &d.MaxSRQWR }},
	{"max_srq_sge", func(d *abi.Device) *uint32 { return &d.MaxSRQSGE }},
}

// Limits are the names of the limits that Strict can lower.
func Limits() (names []string) {
	for i := range limits {
		names = append(names, limits[i].name)
	}
	return names
}

// Strict is the set of behaviours that a process asked for.
type Strict struct {
	Behaviours uint32 // abi.Strict*
	limits     [len(limits)]uint32
	lowered    uint32 // a bit for each lowered limit
}

// Lower lowers the limits of a device.
func (s *Strict) Lower(d *abi.Device) {
	for i := range limits {
		if v := limits[i].of(d); s.lowered>>i&1 != 0 {
			*v = min(*v, s.limits[i])
		}
	}
}

// strict reads a strict statement: names, -names, limits and a seed, separated by commas. Without a name that adds
// a behaviour, all behaviours apply but those removed.
func strict(words []string) (Rule, error) {
	r := Rule{Point: Strictly, Code: AnyCode, Seed: 1, Strict: &Strict{}}
	named, without := false, uint32(0)
	for _, item := range strings.FieldsFunc(strings.Join(words, ","), func(c rune) bool { return c == ',' }) {
		key, value, valued := strings.Cut(strings.Replace(item, ":", "=", 1), "=")
		var err error
		switch limit := slices.Index(Limits(), key); {
		case key == "seed" && valued:
			err = r.set(key, value)
		case limit >= 0 && valued:
			named = true
			var n uint64
			n, err = whole(key, value, 0, math.MaxInt32)
			r.Strict.limits[limit] = uint32(n)
			r.Strict.lowered |= 1 << limit
		case !valued && strings.HasPrefix(key, "-"):
			var bit uint32
			bit, err = behaviour(key[1:])
			without |= bit
		case !valued:
			named = true
			var bit uint32
			bit, err = behaviour(key)
			r.Strict.Behaviours |= bit
		default:
			err = fmt.Errorf("%q: expected a behaviour, seed:NUMBER, or a limit and its value: %s", item,
				strings.Join(Limits(), ", "))
		}
		if err != nil {
			return r, err
		}
	}
	if !named {
		r.Strict.Behaviours = everything()
	}
	r.Strict.Behaviours &^= without
	return r, nil
}

func everything() (all uint32) {
	for i := range Behaviours {
		all |= Behaviours[i].Bit
	}
	return all
}

// behaviour finds the bits of a name.
func behaviour(name string) (uint32, error) {
	var known []string
	for i := range Behaviours {
		if b := &Behaviours[i]; b.Name == name {
			return b.Bit, nil
		}
		known = append(known, Behaviours[i].Name)
	}
	if name == "all" || name == "1" {
		return everything(), nil
	}
	return 0, fmt.Errorf("%q is no behaviour, expected all, or one of %s, or a limit and its value: %s", name,
		strings.Join(known, ", "), strings.Join(Limits(), ":N, ")+":N")
}
